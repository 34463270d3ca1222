// RunReport and comparisons for Python.
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "cli/command_line.h"
#include "evaluation/comparison.h"
#include "evaluation/log_normalizer.h"
#include "evaluation/summary.h"
#include "module.h"
#include "programs/estimate_logz/logz_run.h"
#include "report/run_report.h"
#include "report/table.h"
#include "util/files.h"
#include "util/format.h"

namespace crais {
namespace {

/// The arrays of one method by their names in files, [R,N], and its flags.
std::map<std::string, at::Tensor> arrays_of(const MethodTable& table) {
  std::map<std::string, at::Tensor> arrays;
  for (const auto& [name, column] : table.columns) arrays[name] = table.matrix(name);
  std::vector<at::Tensor> flags;
  for (const auto& repeat : table.flags) flags.push_back(at::tensor(repeat, at::kLong));
  arrays["flags"] = at::stack(flags);
  return arrays;
}

using Numbers = std::vector<double>;
/// Values, standard errors, biases, and whether they are flagged.
using Estimates = std::tuple<Numbers, Numbers, Numbers, std::vector<bool>>;

ImageEstimates estimates_of(const Estimates& given) {
  ImageEstimates found;
  std::tie(found.value, found.std_error, found.bias, found.flagged) = given;
  return found;
}

/// The mean number of transitions of all plans (0: there are none). Of the first problem's plan the
/// temperatures [M + 1] and what pilots made of the divergence there.
std::tuple<double, at::Tensor, at::Tensor> plan_of(const RunReport& r) {
  std::vector<const Plan*> plans;
  if (r.results.state.plan) plans.push_back(&*r.results.state.plan);
  for (const auto& [chunk, result] : r.results.chunks)
    if (result.plan) plans.push_back(&*result.plan);
  const at::Tensor none = at::empty({0}, at::kDouble);
  if (plans.empty()) return {0.0, none, none};
  Numbers counts;
  for (const Plan* plan : plans) add_transitions(*plan, counts);
  const auto first = [&](const at::Tensor& all) {
    return all.defined() ? all.select(1, 0).slice(0, 0, static_cast<int64_t>(counts[0]) + 1) : none;
  };
  return {std::accumulate(counts.begin(), counts.end(), 0.0) / static_cast<double>(counts.size()),
          first(plans[0]->betas), first(plans[0]->divergence)};
}

/// `count` particles of the first run of a density in the plane, of equal weight [count,2], and the
/// masses of the modes that its runs found [R,M].
std::pair<at::Tensor, std::optional<at::Tensor>> cloud_of(const RunReport& r, int64_t count) {
  const ChunkRun& run = r.results.chunks.begin()->second.runs.front();
  const auto modes = run.expectations.find("modes");
  return {thinned(run.particles->z[0], run.particles->log_w[0], count, /*seed=*/0),
          modes == run.expectations.end() ? std::nullopt : std::optional(modes->second.mean)};
}

/// Seconds that the first method has learned on one thread.
double learning_seconds(const RunReport& r) {
  const auto learned = r.results.state.learned.find(tables(r.results).front().method);
  return learned == r.results.state.learned.end() ? 0.0 : learned->second.seconds;
}

std::string table_text(const std::string& title, const Table::Row& headers,
                       const std::vector<Table::Row>& rows) {
  Table table(title);
  for (const Table::Row& row : rows) {
    Table::NamedCells cells;
    for (size_t i = 0; i < headers.size(); ++i) cells.emplace_back(headers[i], row.at(i));
    table.add_row(cells);
  }
  return table.text(stdout_width());
}

std::tuple<double, double, double> numbers_of(const MeanEstimate& m) {
  return {m.mean, m.data_std_error, m.monte_carlo_std_error};
}

/// The library's paired comparison, as crais.results.Comparison takes it.
py::dict compared(const Estimates& after, const Estimates& before) {
  using namespace py::literals;
  const Comparison c = compare(estimates_of(after), estimates_of(before));
  const auto [mean, data_se, mc_se] = numbers_of(c.difference);
  const py::object unflagged = c.unflagged ? py::cast(numbers_of(*c.unflagged)) : py::none();
  return py::dict("mean"_a = mean, "data_se"_a = data_se, "mc_se"_a = mc_se, "low"_a = c.low,
                  "high"_a = c.high, "unpaired_se"_a = c.unpaired_std_error, "bias"_a = c.bias,
                  "share_better"_a = c.share_better, "clearly_better"_a = c.clearly_better,
                  "clearly_worse"_a = c.clearly_worse, "flagged"_a = c.flagged,
                  "unflagged"_a = unflagged, "difference"_a = c.per_image,
                  "std_error"_a = c.std_error);
}

}  // namespace

void bind_report(py::module_& m) {
  m.def("compare", &compared);
  m.def("flag_words", &flag_words);
  m.def("fixed", &fixed);
  m.def("significant", &significant);
  m.def("interval_width", &interval_width);
  m.def("shortest", py::overload_cast<double>(&shortest));
  m.def("table", &table_text);
  m.def("computed_by", [] { return computed_by().dump(); });
  m.def("difference_of_builds", [](const std::string& stored) {
    return difference_of_builds(nlohmann::json::parse(stored));
  });
  m.def("write_file", [](const std::string& path, const std::string& text) {
    make_output_folder(std::filesystem::path(path).parent_path());
    write_file_atomic(path, text);
  });
  py::class_<RunReport>(m, "Report")
      .def_property_readonly("done", [](const RunReport& r) { return r.progress.done; })
      .def_property_readonly("total", [](const RunReport& r) { return r.progress.total; })
      .def_property_readonly("summary", [](const RunReport& r) { return r.summary.dump(); })
      .def_property_readonly("indices", [](const RunReport& r) { return indices_of(r.results); })
      .def_property_readonly(
          "methods",
          [](const RunReport& r) {
            std::vector<std::pair<std::string, std::map<std::string, at::Tensor>>> methods;
            for (const MethodTable& table : tables(r.results))
              methods.emplace_back(table.method, arrays_of(table));
            return methods;
          })
      .def_property_readonly(
          "particles",
          [](const RunReport& r) -> std::optional<std::pair<at::Tensor, at::Tensor>> {
            if (const auto kept = kept_particles(r.results)) return {{kept->z, kept->log_w}};
            return {};
          })
      .def_property_readonly("works",
                             [](const RunReport& r) {
                               std::vector<at::Tensor> works;  // [P,2,K] of each chunk
                               for (const auto& [number, chunk] : r.results.chunks)
                                 if (const at::Tensor& own = chunk.runs.front().works;
                                     own.defined())
                                   works.push_back(own.cpu());
                               return works;
                             })
      .def("__deepcopy__", [](const py::object& r, const py::dict&) { return r; })  // immutable
      .def("__reduce__",
           [](const RunReport&) -> py::object {
             throw argument_error(
                 "a result cannot be pickled: `save` keeps it in a folder, and `to_dict` gives its "
                 "numbers");
           })
      .def_property_readonly("plan", &plan_of)
      .def_property_readonly("learning_seconds", &learning_seconds)
      .def("cloud", &cloud_of)
      .def("text", [](const RunReport& r, int width) { return r.text(width); })
      .def("details", [](const RunReport& r, int width) { return r.details(width); })
      .def("file",
           [](const RunReport& r, const std::string& name) {
             for (const ReportFile& file : r.files)
               if (file.name == name) return file.content();
             throw argument_error("no file '" + name + "'");
           })
      .def("save", [](const RunReport& r, const std::string& folder, bool overwrite) {
        check_whole(folder, "the folder");
        save(r, folder, {.overwrite = overwrite});
      });
}

}  // namespace crais
