#include "report/run_page.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "report/plot.h"
#include "util/format.h"

namespace crais {
namespace {

using nlohmann::json;

/// A run through the temperatures, from the plan and its pilot.
struct Way {
  std::vector<double> steps, betas;              // [T+1]
  std::vector<double> moved_at;                  // [T]: the temperature of each move
  std::vector<double> step_sizes, accept_probs;  // [T]
  std::vector<double> divergence, ess;           // [T+1]
};

/// The first `count` values of the first column.
std::vector<double> first(const at::Tensor& values, size_t count) {
  if (!values.defined()) return {};
  const std::vector<double> numbers = to_column(values.select(1, 0));
  return {numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(count)};
}

Way way_of(const Plan& plan) {
  Way way;
  for (const double beta : to_column(plan.betas.select(1, 0))) {
    way.steps.push_back(static_cast<double>(way.betas.size()));
    way.betas.push_back(beta);
    if (beta == 1) break;  // the rest pads short columns
  }
  const size_t moves = way.betas.size() - 1;
  way.moved_at.assign(way.betas.begin() + 1, way.betas.end());
  way.step_sizes = first(plan.step_sizes, moves);
  way.accept_probs = first(plan.accept_prob, moves);
  way.divergence = first(plan.divergence, moves + 1);
  way.ess = first(plan.ess, moves + 1);
  return way;
}

/// The shared plan, or the plan of the first problem.
std::optional<Plan> plan_of(const RunResults& results) {
  if (results.state.plan || results.chunks.empty()) return results.state.plan;
  return results.chunks.begin()->second.plan;
}

void add_curve(HtmlPage& page, const std::string& title, const std::string& x_label,
               const std::string& y_label, std::vector<double> x, const std::vector<double>& y,
               bool log_y) {
  x.resize(y.size());
  const Plot plot{title, x_label, y_label, false, log_y, {{"", std::move(x), y, {}}}};
  if (has_points(plot)) page.drawing(svg_of(plot), title + ": " + y_label + " against " + x_label);
}

void flatten(const json& value, const std::string& name,
             std::vector<std::vector<std::string>>& rows) {
  if (value.is_object()) {
    for (const auto& [key, entry] : value.items())
      flatten(entry, name.empty() ? key : name + " " + key, rows);
  } else if (!value.is_null()) {
    rows.push_back({name, value.is_string() ? value.get<std::string>() : value.dump()});
  }
}

}  // namespace

std::string trust_words(double std_error, double bias) {
  const double error = 2 * std_error + (std::isnan(bias) ? 0.0 : std::abs(bias));
  if (!std::isfinite(error)) return "of unknown error";
  if (error <= 0) return "within rounding";
  const double unit = std::pow(10.0, std::floor(std::log10(error)) - 1);
  return "within " + significant(std::ceil(error / unit) * unit, 2) + " nats";
}

std::string flagged_words(const MethodSummary& s) {
  const auto flagged = s.flags.find("any");
  const std::string all = with_commas(s.problems * s.repeats) + " estimates";
  if (flagged == s.flags.end() || flagged->second == 0)
    return "None of the " + all + " is flagged.";
  return "Not to be trusted: " + with_commas(flagged->second) + " flagged of " + all + ".";
}

void add_table(HtmlPage& page, const Table& table) {
  std::vector<Table::Row> rows;
  for (const Table::Row& row : table.rows())
    if (!row.empty()) rows.push_back(row);
  page.table(table.title(), table.headers(), rows);
}

void add_histogram(HtmlPage& page, const Histogram& histogram, const std::string& alt) {
  if (!bins_of(histogram.values).counts.empty()) page.drawing(svg_of(histogram), alt);
}

void add_annealing(HtmlPage& page, const RunResults& results) {
  const std::optional<Plan> plan = plan_of(results);
  if (!plan) return;
  const Way way = way_of(*plan);
  page.heading("Annealing");
  page.paragraph(
      results.state.plan
          ? "One plan for all. A pilot tuned it on chains of its own; then it was frozen."
          : "Each problem has its own plan; that of the first is drawn.");
  const std::string beta = "inverse temperature beta";
  add_curve(page, "Schedule", "transition", beta, way.steps, way.betas, false);
  add_curve(page, "Step sizes", beta, "step size", way.moved_at, way.step_sizes, true);
  add_curve(page, "Acceptance in the pilot", beta, "mean acceptance", way.moved_at,
            way.accept_probs, false);
  add_curve(page, "Effective sample size in the pilot", beta, "ESS, fraction of chains", way.betas,
            way.ess, false);
  add_curve(page, "Divergence that is left, by the pilot", beta, "divergence, nats", way.betas,
            way.divergence, true);
}

void add_effective_sizes(HtmlPage& page, const std::vector<MethodTable>& methods,
                         const std::string& problem) {
  for (const MethodTable& method : methods) {
    const at::Tensor ess = method.has("ess") ? method.matrix("ess").mean(0) : at::Tensor();
    if (!ess.defined() || ess.numel() < 2) continue;
    const std::string title = "Effective sample size, " + method.method;
    add_histogram(page, {title, "ESS, fraction of chains", problem + "s", to_column(ess)},
                  title + ": how many " + problem + "s have which");
  }
}

void add_what_helps(HtmlPage& page, double chains_error, double data_error,
                    const std::string& problem) {
  if (!(chains_error > 0) || !(data_error > 0)) return;
  page.paragraph(data_error > 3 * chains_error
                     ? "The " + problem + "s decide the error, not the chains: more " + problem +
                           "s make the mean more certain, more chains do not."
                     : "The chains' error counts beside that of the " + problem +
                           "s: more chains help. It falls with the square root of their number.");
}

void add_record(HtmlPage& page, const json& summary, const std::string& command) {
  page.heading("Again");
  page.paragraph(
      summary.value("in_memory", false)
          ? "Model or data were in memory: the same call from Python repeats the run, to "
            "the byte on the same kind of device. As flags, its options are:"
          : "This command repeats the run, to the byte on the same kind of device:");
  page.verbatim(command);
  std::vector<std::vector<std::string>> rows;
  for (const auto& [key, value] : summary.items())
    if (key != "results" && key != "expectations") flatten(value, key, rows);
  page.begin_fold("Settings and digests");
  page.table("What decided the results, and what computed them", {"setting", "value"}, rows);
  page.end_fold();
}

}  // namespace crais
