#include "report/estimates.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "io/csv.h"
#include "io/json.h"
#include "util/format.h"

namespace crais {
namespace {

using nlohmann::json;

void add_schedule(CsvWriter& csv, const std::string& problem, const Plan& plan, int64_t column) {
  const auto columns = schedule_of(plan, column);
  const auto cell = [&](const char* name, size_t i) {
    const std::vector<double>& values = columns.at(name);
    return i < values.size() ? CsvCell(values[i]) : CsvCell("");
  };
  csv.add_row({problem, 0, 0.0, "", cell("divergence", 0), "", cell("ess", 0)});
  for (size_t i = 1; i < columns.at("beta").size(); ++i)
    csv.add_row({problem, i, cell("beta", i), cell("step_size", i - 1), cell("divergence", i),
                 cell("accept_prob", i - 1), cell("ess", i)});
}

}  // namespace

json to_json(const MethodSummary& s, const std::string& problem) {
  json object = {{"method", s.method},
                 {"base", s.base},
                 {"label", s.bound},
                 {problem + "s", s.problems},
                 {"repeats", s.repeats},
                 {"estimated_bias", json_number(s.bias)},
                 {"flagged", s.flags},
                 {"ess", {{"mean", json_number(s.ess_mean)}, {"min", json_number(s.ess_min)}}},
                 {"accept_prob", json_number(s.accept_prob)},
                 {"transitions", json_number(s.transitions)},
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
  if (s.certificate && s.certificate->exactness) {
    const auto& [distance, met] = *s.certificate->exactness;
    object["certificate"]["distance"] = json_number(distance.mean);
    object["certificate"]["distance_monte_carlo_std_error"] =
        json_number(distance.monte_carlo_std_error);
    object["certificate"]["met"] = json_number(met);
  }
  return object;
}

Table::NamedCells row_of(const MethodSummary& s, const std::string& problem,
                         const Table::NamedCells& own) {
  const auto flagged = s.flags.find("any");
  Table::NamedCells row = {{"method", s.method}};
  row.insert(row.end(), own.begin(), own.end());
  row.insert(row.end(),
             {{"evals/" + problem, with_commas(std::llround(s.all_evaluations()))},
              {"flagged", flagged == s.flags.end() ? "0" : with_commas(flagged->second)}});
  return row;
}

Table::NamedCells details_of(const MethodSummary& s, const std::string& problem,
                             const Table::NamedCells& own) {
  Table::NamedCells row = {{"method", s.method}, {"base", s.base}, {"ESS", fixed(s.ess_mean, 3)}};
  row.insert(row.end(), own.begin(), own.end());
  row.insert(row.end(), {{"accept", s.accept_prob ? fixed(*s.accept_prob, 3) : "-"},
                         {"transitions", s.transitions ? significant(*s.transitions, 4) : "-"},
                         {"base evals", significant(s.base_evaluations, 3)},
                         {"tuning evals", significant(s.tuning_evaluations, 3)},
                         {problem + "s", with_commas(s.problems)}});
  return row;
}

Table::NamedCells bounds_of(const MethodSummary& s, double lower) {
  const Certificate& c = *s.certificate;
  Table::NamedCells row = {{"method", s.method},
                           {"lower", fixed(lower, 3)},
                           {"upper", fixed(c.upper.mean, 3)},
                           {"gap", fixed(c.gap, 4)},
                           {"SE", significant(c.gap_std_error, 2)},
                           {"largest gap", fixed(c.largest_gap, 3)}};
  if (c.exactness)
    row.insert(row.end(), {{"distance", significant(c.exactness->distance.mean, 2)},
                           {"MC SE", known_or_dash(c.exactness->distance.monte_carlo_std_error)},
                           {"met", significant(c.exactness->met, 4)}});
  return row;
}

std::string text_of(const NotedTables& tables, int width) {
  std::string text;
  for (const auto& [table, notes] : tables) {
    text += table.text(width);
    for (const std::string& note : notes) text += wrapped(note, width);
  }
  return text;
}

std::string estimates_csv(const RunResults& results, const std::string& problem,
                          const std::string& value, std::optional<double> truth) {
  std::vector<std::string> names = {problem, "method", "repeat"};
  std::vector<ChunkRun::Column ChunkRun::*> columns;
  const std::vector<MethodTable> all = tables(results);
  for (const auto& [name, column, is_rare] : ChunkRun::columns()) {
    const auto has = [name = name](const MethodTable& table) { return table.has(name); };
    if (is_rare && std::none_of(all.begin(), all.end(), has)) continue;
    columns.push_back(column);
    names.push_back(column == &ChunkRun::log_normalizer ? value : name);
  }
  names.emplace_back("flags");
  if (truth) names.emplace_back("error");
  CsvWriter csv(names);
  for (const auto& [chunk, result] : results.chunks)
    for (const auto& run : result.runs)
      for (size_t i = 0; i < result.indices.size(); ++i) {
        std::vector<CsvCell> cells = {result.indices[i], run.method, run.repeat};
        for (const auto column : columns)
          cells.push_back((run.*column).empty() ? CsvCell("") : CsvCell((run.*column)[i]));
        cells.emplace_back(flag_words(run.flags[i]));
        if (truth) cells.emplace_back(run.log_normalizer[i] - *truth);
        csv.add_row(cells);
      }
  return csv.text();
}

std::map<std::string, std::vector<double>> schedule_of(const Plan& plan, int64_t column) {
  const int64_t moves = (plan.betas.select(1, column) < 1).sum().item<int64_t>();
  const auto seen = [&](const at::Tensor& values, int64_t count) {
    return values.defined() ? to_column(values.select(1, column).slice(0, 0, count))
                            : std::vector<double>();
  };
  return {{"beta", seen(plan.betas, moves + 1)},
          {"step_size", seen(plan.step_sizes, moves)},
          {"accept_prob", seen(plan.accept_prob, moves)},
          {"ess", seen(plan.ess, moves + 1)},
          {"divergence", seen(plan.divergence, moves + 1)}};
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

std::string known_or_dash(double value) { return std::isnan(value) ? "-" : significant(value, 2); }

}  // namespace crais
