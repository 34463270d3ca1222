#include "report/run_page.h"

#include <algorithm>
#include <cmath>

#include "report/plot.h"
#include "util/format.h"
#include "util/version.h"

namespace crais {
namespace {

using nlohmann::json;

constexpr int64_t kMostProblemsDrawn = kMostSeries;

/// One problem's way through the temperatures, as the plan and its pilot have it.
struct Way {
  std::string name;
  std::vector<double> steps, betas;              // [T+1]
  std::vector<double> moved_at;                  // [T]: the temperature of each move
  std::vector<double> step_sizes, accept_probs;  // [T]
  std::vector<double> divergence, ess;           // [T+1]
};

std::vector<double> first(const at::Tensor& values, int64_t column, size_t count) {
  if (!values.defined()) return {};
  const at::Tensor numbers = values.select(1, column).contiguous();
  const auto* const begin = numbers.data_ptr<double>();
  return {begin, begin + count};
}

Way way_of(const Plan& plan, int64_t column, const std::string& name) {
  Way way;
  way.name = name;
  const at::Tensor betas = plan.betas.select(1, column).contiguous();
  do {  // rests at beta = 1 pad short columns
    const auto i = static_cast<int64_t>(way.betas.size());
    way.steps.push_back(static_cast<double>(i));
    way.betas.push_back(betas[i].item<double>());
  } while (way.betas.back() < 1 && static_cast<int64_t>(way.betas.size()) < betas.size(0));
  const size_t moves = way.betas.size() - 1;
  way.moved_at.assign(way.betas.begin() + 1, way.betas.end());
  way.step_sizes = first(plan.step_sizes, column, moves);
  way.accept_probs = first(plan.accept_prob, column, moves);
  way.divergence = first(plan.divergence, column, moves + 1);
  way.ess = first(plan.ess, column, moves + 1);
  return way;
}

std::vector<Way> ways_of(const RunResults& results) {
  std::vector<Way> ways;
  if (results.state.plan) ways.push_back(way_of(*results.state.plan, 0, ""));
  for (const auto& [number, chunk] : results.chunks)
    for (size_t i = 0; chunk.plan && i < chunk.indices.size(); ++i) {
      if (static_cast<int64_t>(ways.size()) == kMostProblemsDrawn) return ways;
      const int64_t columns = chunk.plan->betas.size(1);
      ways.push_back(way_of(*chunk.plan, columns == 1 ? 0 : static_cast<int64_t>(i),
                            std::to_string(chunk.indices[i])));
    }
  return ways;
}

using Column = std::vector<double> Way::*;

void add_curves(HtmlPage& page, const std::vector<Way>& ways, const std::string& title,
                const std::string& x_label, const std::string& y_label, Column x, Column y,
                bool log_y) {
  Plot plot{title, x_label, y_label, false, log_y, {}};
  bool any = false;
  for (const Way& way : ways) {
    Series series{way.name, way.*x, way.*y, {}};
    series.x.resize((way.*y).size());
    any |= std::any_of(series.y.begin(), series.y.end(),
                       [&](double value) { return std::isfinite(value) && (!log_y || value > 0); });
    plot.series.push_back(std::move(series));
  }
  if (any)
    page.drawing(half_page(drawing_of(plot)), title + ": " + y_label + " against " + x_label);
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

constexpr const char* kCitation =
    R"(@inproceedings{goshtasbpour2023adaptive,
  title     = {Adaptive Annealed Importance Sampling with Constant Rate Progress},
  author    = {Goshtasbpour, Shirin and Cohen, Victor and Perez-Cruz, Fernando},
  booktitle = {Proceedings of the 40th International Conference on Machine Learning},
  year      = {2023}
}
)";

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
  if (!bins_of(histogram.values).counts.empty()) page.drawing(drawing_of(histogram), alt);
}

void add_annealing(HtmlPage& page, const RunResults& results) {
  const std::vector<Way> ways = ways_of(results);
  if (ways.empty()) return;
  page.heading("Annealing");
  page.paragraph(
      results.state.plan
          ? "One plan for all. A pilot tuned it on chains of its own; then it was frozen."
          : "Each problem has its own plan; those of the first " + std::to_string(ways.size()) +
                " are drawn.");
  const std::string beta = "inverse temperature beta";
  add_curves(page, ways, "Schedule", "transition", beta, &Way::steps, &Way::betas, false);
  add_curves(page, ways, "Step sizes", beta, "step size", &Way::moved_at, &Way::step_sizes, true);
  add_curves(page, ways, "Acceptance in the pilot", beta, "mean acceptance", &Way::moved_at,
             &Way::accept_probs, false);
  add_curves(page, ways, "Effective sample size in the pilot", beta, "ESS, fraction of chains",
             &Way::betas, &Way::ess, false);
  add_curves(page, ways, "Divergence that is left, by the pilot", beta, "divergence, nats",
             &Way::betas, &Way::divergence, true);
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

void add_cost(HtmlPage& page, double std_error, double evaluations, double floor,
              const std::string& problem) {
  if (!(std_error > 0) || !std::isfinite(std_error) || !(evaluations > 0)) return;
  Plot plot{
      "Error against cost", "evaluations a " + problem, "error of the mean, nats", true, true, {}};
  Series chains{"chains", {}, {}, {}};
  Series total{"chains and data", {}, {}, {}};
  Series run{"this run", {evaluations}, {std_error}, {}, /*joined=*/false};
  for (const double factor : {0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0}) {
    const double error = std_error / std::sqrt(factor);
    chains.add(factor * evaluations, error, 0.0);
    total.add(factor * evaluations, std::hypot(error, floor), 0.0);
  }
  plot.series = {chains, run};
  if (floor > 0) plot.series.push_back(total);
  for (Series& series : plot.series) series.error.clear();
  page.heading("Error against cost");
  std::string words = "The chains' error falls with the square root of their number. ";
  if (floor > 0)
    words += floor > 3 * std_error
                 ? "Here the " + problem + "s decide, not the chains: more " + problem +
                       "s make the mean more certain, more chains do not."
                 : "Here the chains' error counts beside that of the " + problem +
                       "s: more chains help.";
  page.paragraph(words);
  page.drawing(half_page(drawing_of(plot)), "Error of the mean against evaluations a " + problem);
}

void add_record(HtmlPage& page, const json& summary, const std::string& command) {
  page.heading("Again");
  page.paragraph("This command repeats the run, to the byte on the same kind of device:");
  page.verbatim(command);
  std::vector<std::vector<std::string>> rows;
  for (const auto& [key, value] : summary.items())
    if (key != "results" && key != "expectations") flatten(value, key, rows);
  page.begin_fold("Settings and digests");
  page.table("What decided the results, and what computed them", {"setting", "value"}, rows);
  page.end_fold();
  page.begin_fold("How to cite");
  page.paragraph("crais " + crais_version() +
                 ", and, where schedules of constant rate are used, the paper that it grew from:");
  page.verbatim(kCitation);
  page.end_fold();
}

}  // namespace crais
