#include <cmath>

#include "programs/estimate_logz/report.h"
#include "programs/estimate_logz/settings.h"
#include "report/html.h"
#include "report/run_page.h"
#include "util/format.h"

namespace crais {
namespace {

constexpr size_t kMostRows = 20;  // of a table outside a fold

std::string answer(const LogzResults& results, const LogzSummary& s) {
  std::string text = s.method + ": log Z = " + with_error(s.mean, s.std_error) + " nats, a " +
                     s.bound + ", from " + with_commas(s.problems * s.repeats) +
                     " estimates. Judged by its chains, it is " + trust_words(s.std_error, s.bias);
  if (results.truth)
    text += "; the truth is " + fixed(*results.truth, 4) + ", " + fixed(std::abs(*s.error), 4) +
            " away (z = " + fixed(*s.z_score, 1) + ")";
  return text + ". " + flagged_words(s) + " " + doubts_of(s);
}

void add_expectation(HtmlPage& page, const TargetExpectation& e) {
  const Table table = expectation_table(e);
  const bool folded = table.rows().size() > kMostRows;
  if (folded) page.begin_fold(table.title());
  add_table(page, table);
  page.paragraph(reading_of(e.estimate));
  if (folded) page.end_fold();
}

void add_estimates(HtmlPage& page, const LogzResults& results) {
  for (const MethodTable& table : tables(results)) {
    const std::vector<double> values = to_column(table.matrix("log_normalizer"));
    if (values.size() < 2) continue;
    const std::string title = "Estimates of log Z by " + table.method;
    add_histogram(page, {title, "log Z, nats", "estimates", values},
                  title + ": " + with_commas(static_cast<int64_t>(values.size())) + " of them");
  }
}

}  // namespace

std::string page_of(const LogzResults& results, const std::vector<LogzSummary>& methods,
                    const std::vector<TargetExpectation>& expectations,
                    const nlohmann::json& summary) {
  HtmlPage page("Log normaliser of " + results.target);
  for (const LogzSummary& s : methods) page.lead(answer(results, s));
  for (const std::string& note : results.notes) page.paragraph("Note: " + note + ".");
  for (const Table& table : result_tables(results, methods)) add_table(page, table);
  for (const TargetExpectation& e : expectations) add_expectation(page, e);
  add_estimates(page, results);
  if (results.cloud)
    page.drawing(svg_of(*results.cloud),
                 "Particles of all problems, resampled to equal weights, over lines around 50% and "
                 "95% of the mass");
  page.heading("How far to trust it");
  add_effective_sizes(page, tables(results), "problem");
  add_annealing(page, results);
  add_record(page, summary,
             command_of(estimate_logz_synopsis(), {results.target}, summary.at("settings")));
  return page.text();
}

}  // namespace crais
