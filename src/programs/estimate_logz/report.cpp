#include "programs/estimate_logz/report.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/program.h"
#include "io/csv.h"
#include "io/json.h"
#include "programs/estimate_logz/logz_run.h"
#include "util/format.h"

namespace crais {
namespace {

using nlohmann::json;

std::unique_ptr<Expectation> make_expectation(const std::string& name) {
  return ExpectationRegistry::instance().make("expectation", name);
}

/// The numbers of output j.
struct Output {
  const std::string& name;
  double mean, std_error, variance, variance_std_error;
  std::optional<double> truth;

  Output(const TargetExpectation& e, size_t j)
      : name(e.outputs[j]),
        mean(value(e.estimate.mean, j)),
        std_error(value(e.estimate.std_error, j)),
        variance(value(e.estimate.variance, j)),
        variance_std_error(value(e.estimate.variance_std_error, j)) {
    if (e.truth) truth = value(*e.truth, j);
  }
  static double value(const at::Tensor& column, size_t j) {
    return column[static_cast<int64_t>(j)].item<double>();
  }
};

std::vector<Output> outputs_of(const TargetExpectation& e) {
  std::vector<Output> outputs;
  for (size_t j = 0; j < e.outputs.size(); ++j) outputs.emplace_back(e, j);
  return outputs;
}

json to_json(const std::vector<TargetExpectation>& expectations) {
  json list = json::array();
  for (const TargetExpectation& e : expectations) {
    json outputs = json::array();
    for (const Output& o : outputs_of(e))
      outputs.push_back({{"output", o.name},
                         {"mean", json_number(o.mean)},
                         {"std_error", json_number(o.std_error)},
                         {"variance", json_number(o.variance)},
                         {"variance_std_error", json_number(o.variance_std_error)},
                         {"truth", json_number(o.truth)}});
    list.push_back({{"method", e.method},
                    {"expectation", e.name},
                    {"replicates", e.estimate.replicates},
                    {"particles", e.estimate.particles},
                    {"ess", json_number(e.estimate.ess)},
                    {"error_from", to_string(e.estimate.from)},
                    {"outputs", std::move(outputs)}});
  }
  return list;
}

/// The content of expectations.csv: a line for each output.
std::string expectations_csv(const std::vector<TargetExpectation>& expectations) {
  CsvWriter csv({"method", "expectation", "output", "mean", "std_error", "variance",
                 "variance_std_error", "truth", "error_from", "replicates", "particles", "ess"});
  for (const TargetExpectation& e : expectations)
    for (const Output& o : outputs_of(e))
      csv.add_row({e.method, e.name, o.name, o.mean, o.std_error, o.variance, o.variance_std_error,
                   o.truth ? CsvCell(*o.truth) : CsvCell(""), to_string(e.estimate.from),
                   e.estimate.replicates, e.estimate.particles, e.estimate.ess});
  return csv.text();
}

Table expectation_table(const TargetExpectation& e) {
  Table table("Under the target: " + e.name + ", by " + e.method);
  for (const Output& o : outputs_of(e)) {
    Table::NamedCells row = {
        {"of", o.name}, {"mean", fixed(o.mean, 4)}, {"SE", known_or_dash(o.std_error)}};
    if (o.truth) {
      const double z = (o.mean - *o.truth) / o.std_error;
      row.insert(row.end(),
                 {{"truth", fixed(*o.truth, 4)}, {"z", std::isfinite(z) ? fixed(z, 1) : "-"}});
    }
    row.insert(row.end(), {{"variance", fixed(o.variance, 4)},
                           {"its SE", known_or_dash(o.variance_std_error)}});
    table.add_row(row);
  }
  return table;
}

/// A note on the source of the errors in a table.
std::string reading_of(const ExpectationEstimate& e) {
  const std::string all = with_commas(e.particles) + " particles in " + with_commas(e.replicates) +
                          (e.replicates == 1 ? " replicate" : " replicates") +
                          ", effective fraction of their weights " + fixed(e.ess, 3);
  switch (e.from) {
    case ErrorFrom::kParticles:
      return all + "; SE by the delta method over particles.";
    case ErrorFrom::kReplicates:
      return all +
             "; resampling made particles depend on each other: SE by the delta method over "
             "replicates.";
    case ErrorFrom::kNothing:
      break;
  }
  return all +
         "; there is no SE: particles that were resampled depend on each other, and there is one "
         "replicate of them. Ask for more `problems`.";
}

LogzSummary summarise_one(const MethodTable& table, const LogzResults& results) {
  LogzSummary s;
  static_cast<MethodSummary&>(s) = summarise_method(table, results);
  const at::Tensor values = table.matrix("log_normalizer");
  s.mean = values.mean().item<double>();
  s.std_error = error_of_replicates(table, results);
  s.doubts = results.doubts;
  for (const Doubt doubt : doubts_of_replicates(table, results))
    s.doubts.push_back(entry_of(doubt));
  std::string words;
  for (const auto& [word, count] : s.flags)
    if (word != "any") words += (words.empty() ? "" : ", ") + word;
  for (DoubtEntry& entry : s.doubts)
    if (entry.doubt == Doubt::kMostFlagged) entry.sentence += " (" + words + ")";
  if (results.truth) {
    s.error = s.mean - *results.truth;
    s.z_score = *s.error / s.std_error;
    s.root_mean_square_error = std::sqrt((values - *results.truth).square().mean().item<double>());
  }
  return s;
}

/// Tables of the methods and, where there are any, of bounds and expectations.
NotedTables result_tables(const LogzResults& results, const std::vector<LogzSummary>& methods,
                          const std::vector<TargetExpectation>& expectations) {
  Table means("Log evidence of " + results.target + " (dimension " + std::to_string(results.dim) +
                  "), nats",
              /*names=*/1);
  Table bounds("Bounds on log Z, nats");
  for (const LogzSummary& s : methods) {
    Table::NamedCells own = {{"log Z", (s.doubts.empty() ? "" : ">=") + fixed(s.mean, 4)},
                             {"MC SE", significant(s.std_error, 2)}};
    if (results.truth)
      own.insert(own.end(), {{"truth", fixed(*results.truth, 4)},
                             {"error", fixed(*s.error, 4)},
                             {"z", fixed(*s.z_score, 1)}});
    own.emplace_back("bias", known_or_dash(s.bias));
    means.add_row(row_of(s, "replicate", own));
    if (s.certificate) bounds.add_row(bounds_of(s, s.mean));
  }
  std::string reading =
      "A lower bound holds on average: E[estimate] <= log Z. MC SE is the error of the mean over "
      "replicates; the mean is expected to be off by bias";
  if (results.truth)
    reading += "; z is the error divided by MC SE, far below 0 if the bound is loose";
  NotedTables shown = {{means, {reading + "."}}};
  if (!bounds.rows().empty())
    shown.push_back({bounds, {"The truth lies between the bounds on average."}});
  for (const TargetExpectation& e : expectations)
    shown.push_back({expectation_table(e), {reading_of(e.estimate)}});
  return shown;
}

NotedTables detail_tables(const LogzResults& results, const std::vector<LogzSummary>& methods) {
  Table details("Details", /*names=*/1);
  for (const LogzSummary& s : methods) details.add_row(details_of(s, "replicate"));
  NotedTables shown = {{details, {}}};
  std::vector<Round> rounds = results.state.rounds.each;
  if (rounds.empty()) return shown;
  const LogzSummary& s = methods.front();
  rounds.push_back({s.evaluations, s.mean, std::hypot(s.std_error, s.bias)});
  const auto barrier = results.state.rounds.barrier;
  Table table("Rounds are pilots, in nats; the estimate uses fresh particles" +
              (barrier ? "; barrier " + significant(*barrier, 2) : ""));
  for (size_t r = 1; r <= rounds.size(); ++r)
    table.add_row({{"round", r < rounds.size() ? std::to_string(r) : "estimate"},
                   {"evals/replicate", with_commas(std::llround(rounds[r - 1].evaluations))},
                   {"log Z", fixed(rounds[r - 1].log_normalizer, 4)},
                   {"error", significant(rounds[r - 1].error, 2)}});
  shown.push_back({table, {}});
  return shown;
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

void check_expectations(const std::vector<std::string>& names, const Target& target) {
  for (const auto& name : names) make_expectation(name)->outputs(target);
}

std::vector<TargetExpectation> expectations_of(const RunResults& results,
                                               const std::vector<std::string>& names,
                                               const Target& target) {
  std::vector<TargetExpectation> all;
  all.reserve(names.size());
  for (const MethodTable& table : tables(results)) {
    for (const auto& name : names) {
      std::vector<ExpectationSums> parts;
      for (const auto& [number, chunk] : results.chunks)
        for (const ChunkRun& run : chunk.runs)
          if (run.method == table.method) parts.push_back(run.expectations.at(name));
      const auto function = make_expectation(name);
      all.push_back(
          {table.method, name, function->outputs(target), pooled(parts), function->truth(target)});
    }
  }
  return all;
}

std::vector<LogzSummary> summarise(const LogzResults& results) {
  std::vector<LogzSummary> summaries;
  for (const MethodTable& table : tables(results))
    summaries.push_back(summarise_one(table, results));
  return summaries;
}

json to_json(const LogzSummary& s) {
  json object = to_json(s, "problem");
  object["log_normalizer"] = json_number(s.mean);
  object["monte_carlo_std_error"] = json_number(s.std_error);
  object["error"] = json_number(s.error);
  object["z_score"] = json_number(s.z_score);
  object["root_mean_square_error"] = json_number(s.root_mean_square_error);
  return object;
}

RunReport report_of(LogzResults results, const std::vector<TargetExpectation>& expectations,
                    json summary) {
  const std::vector<LogzSummary> methods = summarise(results);
  summary["true_log_normalizer"] = json_number(results.truth);
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
  for (const Round& round : results.state.rounds.each)
    summary["rounds"].push_back({{"evaluations", json_number(round.evaluations)},
                                 {"log_normalizer", json_number(round.log_normalizer)},
                                 {"error", json_number(round.error)}});
  if (const auto barrier = results.state.rounds.barrier) summary["barrier"] = json_number(*barrier);
  if (!expectations.empty()) summary["expectations"] = to_json(expectations);
  const NotedTables shown = result_tables(results, methods, expectations),
                    details = detail_tables(results, methods);
  std::string remarks;
  std::vector<std::string> findings;
  for (const LogzSummary& s : methods) {
    if (!s.doubts.empty()) findings.push_back(doubts_of(s));
    remarks += doubts_of(s);
  }
  const auto everything = std::make_shared<const LogzResults>(results);
  const auto page = [=] {
    RunPage page{"Log evidence of " + everything->target, "problem", "log Z"};
    page.command =
        command_of(estimate_logz_synopsis(), {everything->target}, summary.at("settings"));
    page.tables = shown;
    page.tables.insert(page.tables.end(), details.begin(), details.end());
    page.findings = findings;
    if (everything->cloud) page.particles = *everything->cloud;
    return html_of(page, *everything, summary);
  };
  std::vector<ReportFile> files = {
      {"summary.json", [text = to_text(summary)] { return text; }},
      {"per_problem.csv",
       [=] { return estimates_csv(*everything, "problem", "log_normalizer", everything->truth); }},
      {"schedule.csv", [=] { return schedule_csv(*everything, "problem"); }}};
  if (!expectations.empty())
    files.push_back({"expectations.csv", [=] { return expectations_csv(expectations); }});
  files.push_back({"report.html", page});
  return {std::move(results),
          {},
          {},
          std::move(summary),
          std::move(files),
          [=](int width) {
            std::string text = text_of(shown, width) + wrapped(remarks, width);
            for (const std::string& note : everything->notes)
              text += wrapped("Note: " + note + ".", width);
            return text;
          },
          [=](int width) { return text_of(details, width); }};
}

}  // namespace crais
