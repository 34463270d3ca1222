#include "apps/eval_report.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <numeric>
#include <utility>

#include "core/files.h"
#include "core/format.h"
#include "data/csv.h"
#include "report/json.h"
#include "report/table.h"

namespace crais {
namespace {

using nlohmann::json;

/// Everything known of one method: by column, rows are repeats and columns images.
struct MethodTable {
  std::map<std::string, std::vector<std::vector<double>>> columns;
  Cost cost;
  int64_t num_nonfinite = 0;
  double seconds = 0.0;

  void add(const ChunkRun& run) {
    const auto repeat = static_cast<size_t>(run.repeat);
    for (const auto& [name, column] : ChunkRun::columns()) {
      if ((run.*column).empty()) continue;
      auto& rows = columns[name];
      rows.resize(std::max(rows.size(), repeat + 1));
      rows[repeat].insert(rows[repeat].end(), (run.*column).begin(), (run.*column).end());
    }
    cost += run.cost;
    num_nonfinite += run.num_nonfinite;
    seconds += run.seconds;
  }

  bool has(const std::string& name) const { return columns.count(name) > 0; }
  /// [R,N].
  at::Tensor matrix(const std::string& name) const {
    std::vector<at::Tensor> rows;
    for (const auto& row : columns.at(name)) rows.push_back(at::tensor(row, at::kDouble));
    return at::stack(rows);
  }
};

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Transitions of each column of a plan: those that start below beta = 1.
std::vector<double> transitions(const Plan& plan) {
  const at::Tensor counts = (plan.betas.slice(0, 0, -1) < 1).sum(0).to(at::kDouble);
  return {counts.data_ptr<double>(), counts.data_ptr<double>() + counts.numel()};
}

/// Methods in the order in which they were asked for.
std::vector<std::pair<std::string, MethodTable>> tables(const EvalResults& results) {
  std::vector<std::pair<std::string, MethodTable>> list;
  for (const auto& [chunk, result] : results.chunks) {
    for (const auto& run : result.runs) {
      auto found = std::find_if(list.begin(), list.end(),
                                [&](const auto& entry) { return entry.first == run.method; });
      if (found == list.end()) found = list.insert(list.end(), {run.method, {}});
      found->second.add(run);
    }
  }
  return list;
}

void add_schedule(CsvWriter& csv, const std::string& image, const Plan& plan, int64_t column) {
  const at::Tensor beta = plan.betas.select(1, column).contiguous();
  const at::Tensor step_size = plan.step_sizes.select(1, column).contiguous();
  csv.add_row({image, int64_t{0}, 0.0, ""});
  for (int64_t i = 0; i < plan.num_steps() && beta[i].item<double>() < 1; ++i)
    csv.add_row({image, i + 1, beta[i + 1].item<double>(), step_size[i].item<double>()});
}

Certificate certificate_of(const MethodTable& table) {
  const at::Tensor upper = table.matrix("upper");
  const at::Tensor gap = (upper - table.matrix("log_likelihood")).mean(0);
  const auto images = static_cast<double>(gap.numel());
  return {mean_over_images(upper, table.matrix("upper_std_error")), gap.mean().item<double>(),
          gap.std(0, true).item<double>() / std::sqrt(images), gap.max().item<double>()};
}

std::map<std::string, int64_t> count_flags(const at::Tensor& flags) {
  std::map<std::string, int64_t> counts;
  const at::Tensor all = flags.contiguous();
  for (int64_t i = 0; i < all.numel(); ++i) {
    const auto bits = static_cast<int>(all.data_ptr<double>()[i]);
    if (bits != 0) ++counts["any"];
    for (const int bit : {kFewEffective, kTail, kBaseFailed, kMissedTarget, kModes})
      if (bits & bit) ++counts[flag_words(bit)];
  }
  return counts;
}

std::string results_table(const std::vector<MethodSummary>& summaries) {
  Table table(
      {"method", "base", "log p(x)", "data SE", "MC SE", "bias", "bits/dim", "ESS", "accept",
       "transitions", "evals/image", "+ base", "+ tuning", "images", "flagged", "label"},
      "Mean log-likelihood, nats");
  for (const auto& s : summaries) {
    const auto flagged = s.flags.find("any");
    table.add_row({s.method, s.base, fixed(s.log_likelihood.mean, 3),
                   fixed(s.log_likelihood.data_std_error, 3),
                   significant(s.log_likelihood.monte_carlo_std_error, 2),
                   std::isnan(s.bias) ? "-" : significant(s.bias, 2), fixed(s.bits_per_dim, 4),
                   fixed(s.ess_mean, 3), s.accept_prob ? fixed(*s.accept_prob, 3) : "-",
                   s.transitions ? significant(*s.transitions, 4) : "-",
                   with_commas(std::llround(s.evaluations)), significant(s.base_evaluations, 3),
                   significant(s.tuning_evaluations, 3), with_commas(s.images),
                   flagged == s.flags.end() ? "0" : with_commas(flagged->second), s.bound});
  }
  return table.text();
}

std::string certificate_table(const std::vector<MethodSummary>& summaries) {
  Table table({"method", "lower", "upper", "gap", "SE", "largest gap"},
              "Bounds on the mean log p(x) of these simulated images, nats");
  for (const auto& s : summaries)
    if (s.certificate)
      table.add_row({s.method, fixed(s.log_likelihood.mean, 3), fixed(s.certificate->upper.mean, 3),
                     fixed(s.certificate->gap, 4), significant(s.certificate->gap_std_error, 2),
                     fixed(s.certificate->largest_gap, 3)});
  return table.text();
}

/// A line per image, method, repeat: the columns of ChunkRun, flags as words.
std::string per_image_csv(const EvalResults& results) {
  std::vector<std::string> names = {"image", "method", "repeat"};
  for (const auto& [name, column] : ChunkRun::columns()) names.push_back(name);
  CsvWriter csv(names);
  for (const auto& [chunk, result] : results.chunks)
    for (const auto& run : result.runs)
      for (size_t i = 0; i < result.indices.size(); ++i) {
        std::vector<CsvCell> cells = {result.indices[i], run.method, run.repeat};
        for (const auto& [name, column] : ChunkRun::columns()) {
          if ((run.*column).empty())
            cells.emplace_back("");
          else if (column == &ChunkRun::flags)
            cells.emplace_back(flag_words(static_cast<int>(run.flags[i])));
          else
            cells.emplace_back((run.*column)[i]);
        }
        csv.add_row(cells);
      }
  return csv.text();
}

/// image,step,beta,step_size: a line per transition; image is "all" for a shared plan.
std::string schedule_csv(const EvalResults& results) {
  CsvWriter csv({"image", "step", "beta", "step_size"});
  if (results.shared.plan) add_schedule(csv, "all", *results.shared.plan, 0);
  for (const auto& [chunk, result] : results.chunks)
    for (size_t i = 0; result.plan && i < result.indices.size(); ++i)
      add_schedule(csv, std::to_string(result.indices[i]), *result.plan,
                   result.plan->betas.size(1) == 1 ? 0 : static_cast<int64_t>(i));
  return csv.text();
}

}  // namespace

std::vector<MethodSummary> summarise(const EvalResults& results) {
  std::vector<double> plan_transitions;
  Cost base, tuning = results.shared.tuning;
  for (const auto& [chunk, result] : results.chunks) {
    base += result.base;
    tuning += result.tuning;
    if (!result.plan) continue;
    const auto more = transitions(*result.plan);
    plan_transitions.insert(plan_transitions.end(), more.begin(), more.end());
  }
  if (results.shared.plan) plan_transitions = transitions(*results.shared.plan);

  std::vector<MethodSummary> summaries;
  for (const auto& [method, table] : tables(results)) {
    MethodSummary s;
    s.method = method;
    s.base = results.shared.base;
    s.bound = to_string(Bound::kLower);  // Jensen: of every method there is
    const at::Tensor value = table.matrix("log_likelihood");
    const at::Tensor std_error = table.matrix("std_error");
    s.repeats = value.size(0);
    s.images = value.size(1);
    s.log_likelihood = mean_over_images(value, std_error);
    s.bias = table.matrix("bias").mean().item<double>();
    s.bits_per_dim = bits_per_dim(s.log_likelihood.mean, results.num_pixels);
    if (table.has("upper")) s.certificate = certificate_of(table);
    const at::Tensor ess = table.matrix("ess");
    s.ess_mean = ess.mean().item<double>();
    s.ess_min = ess.min().item<double>();
    s.flags = count_flags(table.matrix("flags"));
    const auto images = static_cast<double>(s.images);
    const double runs = images * static_cast<double>(s.repeats);
    s.evaluations = static_cast<double>(table.cost.densities) / runs;
    s.gradients = static_cast<double>(table.cost.gradients) / runs;
    s.base_evaluations = static_cast<double>(base.densities) / images;
    s.num_nonfinite = table.num_nonfinite;
    s.seconds = table.seconds;
    if (table.has("accept_prob")) {
      s.accept_prob = table.matrix("accept_prob").mean().item<double>();
      s.transitions = mean(plan_transitions);
      s.tuning_evaluations = static_cast<double>(tuning.densities) / images;
    }
    summaries.push_back(std::move(s));
  }
  return summaries;
}

json to_json(const MethodSummary& s) {
  const auto optional = [](const std::optional<double>& value) {
    return value ? json_number(*value) : json(nullptr);
  };
  json object = {{"method", s.method},
                 {"base", s.base},
                 {"label", s.bound},
                 {"images", s.images},
                 {"repeats", s.repeats},
                 {"log_likelihood", json_number(s.log_likelihood.mean)},
                 {"data_std_error", json_number(s.log_likelihood.data_std_error)},
                 {"monte_carlo_std_error", json_number(s.log_likelihood.monte_carlo_std_error)},
                 {"estimated_bias", json_number(s.bias)},
                 {"bits_per_dim", json_number(s.bits_per_dim)},
                 {"flagged", s.flags},
                 {"ess", {{"mean", json_number(s.ess_mean)}, {"min", json_number(s.ess_min)}}},
                 {"accept_prob", optional(s.accept_prob)},
                 {"transitions", optional(s.transitions)},
                 {"evaluations_per_image",
                  {{"base", s.base_evaluations},
                   {"tuning", s.tuning_evaluations},
                   {"estimating", s.evaluations},
                   {"estimating_with_gradient", s.gradients}}},
                 {"nonfinite_proposals", s.num_nonfinite},
                 {"thread_seconds", s.seconds}};
  if (s.certificate)
    object["certificate"] = {
        {"upper", json_number(s.certificate->upper.mean)},
        {"upper_monte_carlo_std_error", json_number(s.certificate->upper.monte_carlo_std_error)},
        {"gap", json_number(s.certificate->gap)},
        {"gap_std_error", json_number(s.certificate->gap_std_error)},
        {"largest_gap", json_number(s.certificate->largest_gap)}};
  return object;
}

json summary_of(const json& run, const std::vector<MethodSummary>& methods) {
  json summary = run;
  summary["results"] = json::array();
  for (const auto& method : methods) summary["results"].push_back(to_json(method));
  return summary;
}

void print_results(const std::vector<MethodSummary>& methods, const std::string& folder) {
  std::cout
      << results_table(methods)
      << "A lower bound is one on average: E[estimate] <= log p(x). MC SE is the error of these "
         "chains,\ndata SE that of these images; bias is what the chains' errors suggest. Flagged "
         "images are\nnot to be trusted: see 'flags' in per_image.csv.\n";
  if (std::any_of(methods.begin(), methods.end(), [](const auto& s) { return s.certificate; }))
    std::cout << certificate_table(methods)
              << "The truth lies between the bounds on average. The gap certifies these settings "
                 "for images like\nthese.\n";
  if (!folder.empty())
    std::cout << "Files: " << folder << "/summary.json, per_image.csv, schedule.csv\n";
  std::cout.flush();
}

void write_reports(const std::filesystem::path& folder, const EvalResults& results,
                   const json& summary) {
  write_file_atomic(folder / "per_image.csv", per_image_csv(results));
  write_file_atomic(folder / "schedule.csv", schedule_csv(results));
  write_file_atomic(folder / "summary.json", to_text(summary));
}

}  // namespace crais
