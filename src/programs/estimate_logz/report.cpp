#include "programs/estimate_logz/report.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/program.h"
#include "io/json.h"
#include "programs/estimate_logz/settings.h"
#include "report/run_page.h"
#include "report/table.h"
#include "util/format.h"

namespace crais {
namespace {

using nlohmann::json;

LogzSummary summarise_one(const MethodTable& table, const LogzResults& results) {
  LogzSummary s;
  static_cast<MethodSummary&>(s) = summarise_method(table, results);
  const at::Tensor values = table.matrix("log_normalizer");
  s.mean = values.mean().item<double>();
  s.std_error = error_of_replicates(table, results);
  s.doubts = results.doubts;
  for (const Doubt doubt : doubts_of_replicates(table, results))
    s.doubts.push_back(entry_of(doubt));
  if (results.truth) {
    s.error = s.mean - *results.truth;
    s.z_score = *s.error / s.std_error;
    s.root_mean_square_error = std::sqrt((values - *results.truth).square().mean().item<double>());
  }
  return s;
}

/// Nothing where there were none.
std::optional<Table> rounds_table(const LogzResults& results, const LogzSummary& s) {
  const std::vector<Round> rounds = rounds_of(results);
  if (rounds.empty()) return {};
  Table table({"round", "evals/problem", "log Z", "error"},
              "Rounds are pilots, in nats; the estimate uses fresh particles; "
              "barrier " +
                  significant(*barrier_of(results), 2));
  const auto add = [&table](const std::string& name, const Round& round) {
    table.add_row({name, with_commas(std::llround(round.evaluations)),
                   fixed(round.log_normalizer, 4), significant(round.error, 2)});
  };
  for (size_t r = 0; r < rounds.size(); ++r) add(std::to_string(r + 1), rounds[r]);
  add("estimate", {s.evaluations, s.mean, std::hypot(s.std_error, s.bias)});
  return table;
}

std::string text_of(const std::vector<Table>& shown, bool has_truth, bool has_bounds,
                    const std::vector<TargetExpectation>& expectations, int width) {
  std::string reading =
      "A lower bound holds on average: E[estimate] <= log Z. MC SE is the error of the mean over "
      "problems, which are replicates of one density; the mean is expected to be off by bias";
  if (has_truth) reading += "; z is the error divided by MC SE, far below 0 if the bound is loose";
  std::string text = shown.front().text(width) + wrapped(reading + ".", width);
  for (size_t i = 1; i < shown.size(); ++i) text += shown[i].text(width);
  if (has_bounds) text += "The truth lies between the bounds on average.\n";
  for (const TargetExpectation& e : expectations)
    text += expectation_table(e).text(width) + wrapped(reading_of(e.estimate), width);
  return text;
}

}  // namespace

std::vector<LogzSummary> summarise(const LogzResults& results) {
  std::vector<LogzSummary> summaries;
  for (const MethodTable& table : tables(results))
    summaries.push_back(summarise_one(table, results));
  return summaries;
}

std::vector<Table> result_tables(const LogzResults& results,
                                 const std::vector<LogzSummary>& methods) {
  std::vector<std::string> headers = {"log Z", "MC SE"};
  if (results.truth) headers.insert(headers.end(), {"truth", "error", "z"});
  MethodsTable table("problem",
                     "Log normaliser of " + results.target + " (dimension " +
                         std::to_string(results.dim) + "), nats",
                     headers);
  std::vector<double> lower;
  for (const LogzSummary& s : methods) {
    lower.push_back(s.mean);
    std::vector<std::string> cells = {(s.doubts.empty() ? "" : ">=") + fixed(s.mean, 4),
                                      significant(s.std_error, 2)};
    if (results.truth)
      cells.insert(cells.end(),
                   {fixed(*results.truth, 4), fixed(*s.error, 4), fixed(*s.z_score, 1)});
    table.add(s, cells);
  }
  std::vector<Table> shown = {table.table()};
  if (const auto rounds = rounds_table(results, methods.front())) shown.push_back(*rounds);
  if (const auto bounds =
          certificate_table({methods.begin(), methods.end()}, lower, "Bounds on log Z, nats"))
    shown.push_back(*bounds);
  return shown;
}

json to_json(const LogzSummary& s) {
  const auto optional = [](const std::optional<double>& value) {
    return value ? json_number(*value) : json(nullptr);
  };
  json object = to_json(s, "problem");
  object["log_normalizer"] = json_number(s.mean);
  object["monte_carlo_std_error"] = json_number(s.std_error);
  object["error"] = optional(s.error);
  object["z_score"] = optional(s.z_score);
  object["root_mean_square_error"] = optional(s.root_mean_square_error);
  return object;
}

namespace {

std::string page_of(const LogzResults& results, const std::vector<LogzSummary>& methods,
                    const std::vector<TargetExpectation>& expectations, const json& summary) {
  RunPage page{"Log normaliser of " + results.target, "problem", "log Z"};
  page.command = command_of(estimate_logz_synopsis(), {results.target}, summary.at("settings"));
  for (const Table& table : result_tables(results, methods)) page.tables.emplace_back(table, "");
  for (const TargetExpectation& e : expectations)
    page.tables.emplace_back(expectation_table(e), reading_of(e.estimate));
  for (const LogzSummary& s : methods)
    if (const std::string doubts = doubts_of(s); !doubts.empty()) page.findings.push_back(doubts);
  if (results.cloud) page.particles = *results.cloud;
  return html_of(page, results, summary);
}

/// What float32 leaves of a log density near log Z, where that is not little beside the error.
std::optional<std::string> rounding_of(const LogzSummary& s) {
  constexpr double kLittle = 0.1, kLeast = 1e-3;  // of the error; nats
  const auto size = static_cast<float>(std::abs(s.mean));
  const double step = std::nextafter(size, INFINITY) - size;
  if (!(step > std::max(kLittle * s.std_error, kLeast))) return {};
  return "float32 resolves " + significant(step, 1) + " nats at a log density of " +
         fixed(s.mean, 0) + ": compute it in float64";
}

}  // namespace

RunReport report_of(LogzResults results, const std::vector<TargetExpectation>& expectations,
                    json summary) {
  const std::vector<LogzSummary> methods = summarise(results);
  summary["true_log_normalizer"] = results.truth ? json_number(*results.truth) : json();
  summary["warnings"] = warnings_of(summary);
  const auto rounding = rounding_of(methods.front());
  if (results.is_single && rounding) results.notes.push_back(*rounding);
  if (!results.notes.empty()) summary["notes"] = results.notes;
  summary["results"] = json::array();
  for (const LogzSummary& method : methods) summary["results"].push_back(to_json(method));
  if (const auto& witness = results.state.witness)
    summary["second_opinion"] = {{"base", "mixture"},
                                 {"log_normalizer", json_number(witness->value)},
                                 {"monte_carlo_std_error", json_number(witness->error)}};
  for (const Round& round : rounds_of(results))
    summary["rounds"].push_back({{"evaluations", json_number(round.evaluations)},
                                 {"log_normalizer", json_number(round.log_normalizer)},
                                 {"error", json_number(round.error)}});
  if (const auto barrier = barrier_of(results)) summary["barrier"] = json_number(*barrier);
  if (!expectations.empty()) summary["expectations"] = to_json(expectations);
  std::vector<ReportFile> files = {
      {"summary.json", to_text(summary)},
      {"per_problem.csv", estimates_csv(results, "problem", "log_normalizer", results.truth)},
      {"schedule.csv", schedule_csv(results, "problem")}};
  if (!expectations.empty()) files.emplace_back("expectations.csv", expectations_csv(expectations));
  const auto everything = std::make_shared<const LogzResults>(results);
  files.emplace_back("report.html", [everything, methods, expectations, summary] {
    return page_of(*everything, methods, expectations, summary);
  });
  std::string errors;
  for (const LogzSummary& s : methods)
    errors += with_flags("estimate-logz", doubts_of(s)) +
              error_of_mean(summary.value("settings", json::object()), s, s.std_error);
  const bool has_bounds = std::any_of(methods.begin(), methods.end(),
                                      [](const auto& s) { return s.certificate.has_value(); });
  auto shown = [tables = result_tables(results, methods), has_truth = results.truth.has_value(),
                has_bounds, expectations, errors, notes = results.notes](int width) {
    std::string text =
        text_of(tables, has_truth, has_bounds, expectations, width) + wrapped(errors, width);
    for (const std::string& note : notes) text += wrapped("Note: " + note + ".", width);
    return text;
  };
  return {std::move(results), Progressed(),     json(),
          std::move(summary), std::move(files), std::move(shown)};
}

}  // namespace crais
