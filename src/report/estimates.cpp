#include "report/estimates.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>

#include "io/csv.h"
#include "io/json.h"
#include "util/error.h"
#include "util/format.h"

namespace crais {
namespace {

using nlohmann::json;

std::vector<std::string> all_headers(const std::string& problem,
                                     const std::vector<std::string>& own,
                                     const std::vector<std::string>& details) {
  std::vector<std::string> headers = {"method", "base"};
  headers.insert(headers.end(), own.begin(), own.end());
  headers.insert(headers.end(), {"bias", "ESS", "evals/" + problem, "flagged"});
  headers.insert(headers.end(), details.begin(), details.end());
  headers.insert(headers.end(),
                 {"accept", "transitions", "of it base", "of it tuning", problem + "s", "label"});
  return headers;
}

void add_schedule(CsvWriter& csv, const std::string& problem, const Plan& plan, int64_t column) {
  const at::Tensor beta = plan.betas.select(1, column).contiguous();
  const at::Tensor step_size = plan.step_sizes.select(1, column).contiguous();
  const auto seen = [&](const at::Tensor& values, int64_t i) {
    return values.defined() ? CsvCell(values[i][column].item<double>()) : CsvCell("");
  };
  csv.add_row({problem, int64_t{0}, 0.0, "", seen(plan.divergence, 0), "", seen(plan.ess, 0)});
  for (int64_t i = 0; i < plan.num_steps() && beta[i].item<double>() < 1; ++i)
    csv.add_row({problem, i + 1, beta[i + 1].item<double>(), step_size[i].item<double>(),
                 seen(plan.divergence, i + 1), seen(plan.accept_prob, i), seen(plan.ess, i + 1)});
}

}  // namespace

json to_json(const MethodSummary& s, const std::string& problem) {
  const auto optional = [](const std::optional<double>& value) {
    return value ? json_number(*value) : json(nullptr);
  };
  json object = {{"method", s.method},
                 {"base", s.base},
                 {"label", s.bound},
                 {problem + "s", s.problems},
                 {"repeats", s.repeats},
                 {"estimated_bias", json_number(s.bias)},
                 {"flagged", s.flags},
                 {"ess", {{"mean", json_number(s.ess_mean)}, {"min", json_number(s.ess_min)}}},
                 {"accept_prob", optional(s.accept_prob)},
                 {"transitions", optional(s.transitions)},
                 {"evaluations_per_" + problem,
                  {{"total", s.all_evaluations()},
                   {"base", s.base_evaluations},
                   {"tuning", s.tuning_evaluations},
                   {"estimating", s.evaluations},
                   {"estimating_with_gradient", s.gradients}}},
                 {"nonfinite_proposals", s.num_nonfinite},
                 {"thread_seconds", s.seconds}};
  object["reasons"] = json::array();
  for (const DoubtEntry& entry : s.doubts)
    object["reasons"].push_back(
        {{"reason", entry.word}, {"what", entry.sentence}, {"remedy", entry.remedy}});
  if (s.certificate)
    object["certificate"] = {
        {"upper", json_number(s.certificate->upper.mean)},
        {"upper_monte_carlo_std_error", json_number(s.certificate->upper.monte_carlo_std_error)},
        {"gap", json_number(s.certificate->gap)},
        {"gap_std_error", json_number(s.certificate->gap_std_error)},
        {"largest_gap", json_number(s.certificate->largest_gap)}};
  return object;
}

Format parse_format(const std::string& name) {
  if (name == "table") return Format::kTable;
  if (name == "json") return Format::kJson;
  if (name == "csv") return Format::kCsv;
  throw argument_error("unknown format '" + name + "'; choose from table, json, csv");
}

MethodsTable::MethodsTable(const std::string& problem, const std::string& title,
                           const std::vector<std::string>& own,
                           const std::vector<std::string>& details)
    : table_(all_headers(problem, own, details), title, /*names=*/1) {}

void MethodsTable::add(const MethodSummary& s, const std::vector<std::string>& own,
                       const std::vector<std::string>& details) {
  const auto flagged = s.flags.find("any");
  std::vector<std::string> row = {s.method, s.base};
  row.insert(row.end(), own.begin(), own.end());
  row.insert(row.end(), {std::isnan(s.bias) ? "-" : significant(s.bias, 2), fixed(s.ess_mean, 3),
                         with_commas(std::llround(s.all_evaluations())),
                         flagged == s.flags.end() ? "0" : with_commas(flagged->second)});
  row.insert(row.end(), details.begin(), details.end());
  row.insert(row.end(), {s.accept_prob ? fixed(*s.accept_prob, 3) : "-",
                         s.transitions ? significant(*s.transitions, 4) : "-",
                         significant(s.base_evaluations, 3), significant(s.tuning_evaluations, 3),
                         with_commas(s.problems), s.bound});
  table_.add_row(row);
}

std::string results_csv(const json& results) {
  std::vector<std::string> names;
  std::vector<std::map<std::string, std::string>> rows;
  for (const json& result : results) {
    std::map<std::string, std::string>& row = rows.emplace_back();
    const auto put = [&](const std::string& name, const json& value) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      if (value.is_number_float())
        row[name] = shortest(value.get<double>());
      else if (value.is_number() || value.is_string())
        row[name] = value.is_string() ? value.get<std::string>() : value.dump();
    };
    for (const auto& [key, value] : result.items())
      if (value.is_object())
        for (const auto& [inner, entry] : value.items()) put(key + "." + inner, entry);
      else
        put(key, value);
  }
  CsvWriter csv(names);
  for (auto& row : rows) {
    std::vector<CsvCell> cells;
    for (const auto& name : names) cells.emplace_back(row[name]);
    csv.add_row(cells);
  }
  return csv.text();
}

bool print_for_programs(const json& summary, Format format) {
  if (format == Format::kJson) std::cout << to_text(summary) << std::flush;
  if (format == Format::kCsv) std::cout << results_csv(summary.at("results")) << std::flush;
  return format != Format::kTable;
}

std::optional<Table> certificate_table(const std::vector<MethodSummary>& summaries,
                                       const std::vector<double>& lower, const std::string& title) {
  Table table({"method", "lower", "upper", "gap", "SE", "largest gap"}, title);
  bool any = false;
  for (size_t i = 0; i < summaries.size(); ++i) {
    const auto& certificate = summaries[i].certificate;
    if (!certificate) continue;
    any = true;
    table.add_row({summaries[i].method, fixed(lower[i], 3), fixed(certificate->upper.mean, 3),
                   fixed(certificate->gap, 4), significant(certificate->gap_std_error, 2),
                   fixed(certificate->largest_gap, 3)});
  }
  return any ? std::optional(table) : std::nullopt;
}

std::string estimates_csv(const RunResults& results, const std::string& problem,
                          const std::string& value, std::optional<double> truth) {
  std::vector<std::string> names = {problem, "method", "repeat"};
  for (const auto& [name, column] : ChunkRun::columns())
    names.push_back(column == &ChunkRun::log_normalizer ? value : name);
  names.emplace_back("flags");
  if (truth) names.emplace_back("error");
  CsvWriter csv(names);
  for (const auto& [chunk, result] : results.chunks)
    for (const auto& run : result.runs)
      for (size_t i = 0; i < result.indices.size(); ++i) {
        std::vector<CsvCell> cells = {result.indices[i], run.method, run.repeat};
        for (const auto& [name, column] : ChunkRun::columns()) {
          if ((run.*column).empty())
            cells.emplace_back("");
          else
            cells.emplace_back((run.*column)[i]);
        }
        cells.emplace_back(flag_words(run.flags[i]));
        if (truth) cells.emplace_back(run.log_normalizer[i] - *truth);
        csv.add_row(cells);
      }
  return csv.text();
}

std::string schedule_csv(const RunResults& results, const std::string& problem) {
  CsvWriter csv({problem, "step", "beta", "step_size", "divergence", "accept_prob", "ess"});
  if (results.state.plan) add_schedule(csv, "all", *results.state.plan, 0);
  for (const auto& [chunk, result] : results.chunks)
    for (size_t i = 0; result.plan && i < result.indices.size(); ++i)
      add_schedule(csv, std::to_string(result.indices[i]), *result.plan,
                   result.plan->betas.size(1) == 1 ? 0 : static_cast<int64_t>(i));
  return csv.text();
}

std::string doubts_of(const MethodSummary& summary) {
  std::string lines;
  for (const DoubtEntry& entry : summary.doubts)
    lines += "Flagged as a whole (" + summary.method + "): " + entry.sentence + ". To mend it, " +
             entry.remedy + ".\n";
  return lines;
}

std::string error_of_mean(const nlohmann::json& settings, const MethodSummary& summary,
                          double monte_carlo_std_error) {
  const auto wanted_error = settings.find("mean-error");
  if (wanted_error == settings.end() || !wanted_error->is_number() || !summary.transitions)
    return "";
  const double error = std::hypot(monte_carlo_std_error, summary.bias);
  const std::string line = "Chains and bias leave the mean an error of " + significant(error, 2) +
                           " nats; --mean-error asked for " +
                           significant(wanted_error->get<double>(), 2);
  if (error <= wanted_error->get<double>()) return line + ".\n";
  return line +
         ": the pilots underestimated it, or --max-evals ended the run. Ask for a smaller error.\n";
}

std::string known_or_dash(double error) { return std::isnan(error) ? "-" : significant(error, 2); }

}  // namespace crais
