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

Numbers numbers_of(const Json& tensor) {
  const at::Tensor all = tensor.get<at::Tensor>().contiguous();
  return {all.data_ptr<double>(), all.data_ptr<double>() + all.numel()};
}

/// From values, standard errors, biases, and whether they are flagged.
ImageEstimates estimates_of(const Json& a) {
  ImageEstimates found;
  found.value = numbers_of(a[0]);
  found.std_error = numbers_of(a[1]);
  found.bias = numbers_of(a[2]);
  found.flagged = a[3].get<std::vector<bool>>();
  return found;
}

/// The mean number of transitions of all plans (0: there are none). Of the first problem's plan the
/// temperatures [M + 1] and what pilots made of the divergence there.
std::tuple<double, at::Tensor, at::Tensor> plan_of(const RunReport& r) {
  std::vector<const Plan*> plans;
  if (r.results.state.plan) plans.push_back(&*r.results.state.plan);
  for (const auto& [chunk, result] : r.results.chunks)
    if (result.plan) plans.push_back(&*result.plan);
  if (plans.empty()) return {0.0, doubles({}), doubles({})};
  Numbers counts;
  for (const Plan* plan : plans) add_transitions(*plan, counts);
  const auto first = schedule_of(*plans[0], 0);
  return {std::accumulate(counts.begin(), counts.end(), 0.0) / static_cast<double>(counts.size()),
          doubles(first.at("beta")), doubles(first.at("divergence"))};
}

/// `count` particles of the first run of a density in the plane, of equal weight [count,2], and the
/// masses of the modes that its runs found [R,M].
std::pair<at::Tensor, Array> cloud_of(const RunReport& r, int64_t count) {
  const ChunkRun& run = r.results.chunks.begin()->second.runs.front();
  const auto modes = run.expectations.find("modes");
  return {thinned(run.particles->z[0], run.particles->log_w[0], count, /*seed=*/0),
          modes == run.expectations.end() ? Array() : Array(modes->second.mean)};
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

at::Tensor numbers_of(const MeanEstimate& m) {
  return doubles({m.mean, m.data_std_error, m.monte_carlo_std_error});
}

/// The library's paired comparison, as crais.results.Comparison takes it.
Json compared(const Json& a, const Run& /*run*/) {
  const Comparison c = compare(estimates_of(a[0]), estimates_of(a[1]));
  const auto number = [](double value) { return at::scalar_tensor(value, at::kDouble); };
  return {{"mean", number(c.difference.mean)},
          {"data_se", number(c.difference.data_std_error)},
          {"mc_se", number(c.difference.monte_carlo_std_error)},
          {"low", number(c.low)},
          {"high", number(c.high)},
          {"unpaired_se", number(c.unpaired_std_error)},
          {"bias", number(c.bias)},
          {"share_better", number(c.share_better)},
          {"clearly_better", c.clearly_better},
          {"clearly_worse", c.clearly_worse},
          {"flagged", c.flagged},
          {"unflagged", c.unflagged ? Json(numbers_of(*c.unflagged)) : Json()},
          {"difference", doubles(c.per_image)},
          {"std_error", doubles(c.std_error)}};
}

/// A function of a report, whose handle comes first.
template <typename Of>
std::function<Json(const Json& arguments, const Run& run)> of_report(const Of& of) {
  return [of](const Json& a, const Run&) {
    return Json(of(*reinterpret_cast<RunReport*>(a[0].get<uintptr_t>()), a));
  };
}

Json methods_of(const RunReport& r) {
  Json methods = Json::array();
  for (const MethodTable& table : tables(r.results))
    methods.push_back(Json::array({table.method, arrays_of(table)}));
  return methods;
}

std::string file_of(const RunReport& r, const std::string& name) {
  for (const ReportFile& file : r.files)
    if (file.name == name) return file.content();
  throw argument_error("no file '" + name + "'");
}

}  // namespace

Json keep(RunReport report) {
  return {{"report", reinterpret_cast<uintptr_t>(new RunReport(std::move(report)))}};
}

Functions functions_of_reports() {
  using Report = const RunReport&;
  return {
      {"compare", compared},
      {"flag_words", [](const Json& a, const Run&) { return Json(flag_words(a[0])); }},
      {"fixed", [](const Json& a, const Run&) { return Json(fixed(a[0].get<double>(), a[1])); }},
      {"significant",
       [](const Json& a, const Run&) { return Json(significant(a[0].get<double>(), a[1])); }},
      {"interval_width",
       [](const Json& a, const Run&) { return Json(interval_width(a[0].get<int64_t>())); }},
      {"shortest", [](const Json& a, const Run&) { return Json(shortest(a[0].get<double>())); }},
      {"table", [](const Json& a, const Run&) { return Json(table_text(a[0], a[1], a[2])); }},
      {"computed_by", [](const Json&, const Run&) { return Json(computed_by()); }},
      {"difference_of_builds",
       [](const Json& a, const Run&) { return Json(difference_of_builds(a[0])); }},
      {"write_file",
       [](const Json& a, const Run&) {
         const auto path = a[0].get<std::filesystem::path>();
         make_output_folder(path.parent_path());
         write_file_atomic(path, a[1].get<std::string>());
         return Json();
       }},
      {"about", of_report([](Report r, const Json&) {
         return Json::array({r.progress.done, r.progress.total, r.summary, indices_of(r.results)});
       })},
      {"drop", of_report([](Report r, const Json&) { return delete &r, nullptr; })},
      {"methods", of_report([](Report r, const Json&) { return methods_of(r); })},
      {"particles", of_report([](Report r, const Json&) {
         const auto kept = kept_particles(r.results);
         return kept ? Json::array({kept->z, kept->log_w}) : Json();
       })},
      {"works", of_report([](Report r, const Json&) {
         Json works = Json::array();  // [P,2,K] of each chunk
         for (const auto& [number, chunk] : r.results.chunks)
           if (const at::Tensor& own = chunk.runs.front().works; own.defined())
             works.push_back(own.cpu());
         return works;
       })},
      {"plan", of_report([](Report r, const Json&) { return plan_of(r); })},
      {"learning_seconds", of_report([](Report r, const Json&) { return learning_seconds(r); })},
      {"cloud", of_report([](Report r, const Json& a) { return cloud_of(r, a[1]); })},
      {"text", of_report([](Report r, const Json& a) { return r.text(a[1]); })},
      {"details", of_report([](Report r, const Json& a) { return r.details(a[1]); })},
      {"file", of_report([](Report r, const Json& a) { return file_of(r, a[1]); })},
      {"save", of_report([](Report r, const Json& a) {
         const auto folder = a[1].get<std::string>();
         check_whole(folder, "the folder");
         save(r, folder, {.overwrite = a[2]});
         return nullptr;
       })}};
}

}  // namespace crais
