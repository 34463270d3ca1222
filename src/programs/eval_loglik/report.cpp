#include "programs/eval_loglik/report.h"

#include <memory>
#include <utility>

#include "io/json.h"
#include "io/npy.h"
#include "report/table.h"
#include "util/error.h"
#include "util/format.h"

namespace crais {
namespace {

using nlohmann::json;

json to_json(const LikelihoodSummary& s) {
  json object = to_json(s, "image");
  object["log_likelihood"] = json_number(s.log_likelihood.mean);
  object["data_std_error"] = json_number(s.log_likelihood.data_std_error);
  object["monte_carlo_std_error"] = json_number(s.log_likelihood.monte_carlo_std_error);
  object["bits_per_dim"] = json_number(s.bits_per_dim);
  return object;
}

std::string text_of(const std::vector<LikelihoodSummary>& methods, const std::string& errors,
                    int width) {
  const std::vector<Table> shown = result_tables(methods);
  const std::string text =
      shown.front().text(width) + wrapped(kReading, width) + wrapped(errors, width);
  if (shown.size() == 1) return text;
  return text + shown.back().text(width) +
         wrapped(
             "The truth lies between the bounds on average. The gap certifies these "
             "settings for images like these.",
             width);
}

}  // namespace

const std::string kReading =
    "A lower bound holds on average: E[estimate] <= log p(x). data SE comes from the choice of "
    "images, MC SE from the random chains; the mean is expected to be off by bias. Do not trust "
    "flagged images: see 'flags' in per_image.csv.";

std::vector<Table> result_tables(const std::vector<LikelihoodSummary>& methods) {
  MethodsTable table("image", "Mean log-likelihood, nats", {"log p(x)", "data SE", "MC SE"},
                     {"bits/dim"});
  std::vector<double> lower;
  for (const auto& s : methods) {
    lower.push_back(s.log_likelihood.mean);
    table.add(s,
              {fixed(s.log_likelihood.mean, 3), fixed(s.log_likelihood.data_std_error, 3),
               known_or_dash(s.log_likelihood.monte_carlo_std_error)},
              {fixed(s.bits_per_dim, 4)});
  }
  std::vector<Table> shown = {table.table()};
  if (const auto certificates =
          certificate_table({methods.begin(), methods.end()}, lower,
                            "Bounds on the mean log p(x) of these simulated images, nats"))
    shown.push_back(*certificates);
  return shown;
}

std::vector<LikelihoodSummary> summarise(const EvalResults& results) {
  std::vector<LikelihoodSummary> summaries;
  for (const MethodTable& table : tables(results)) {
    LikelihoodSummary s{summarise_method(table, results), {}, 0.0};
    s.log_likelihood = mean_over_images(table.matrix("log_normalizer"), table.matrix("std_error"));
    s.bits_per_dim = bits_per_dim(s.log_likelihood.mean, results.num_pixels) + results.bits_offset;
    summaries.push_back(std::move(s));
  }
  return summaries;
}

RunReport report_of(EvalResults results, json summary, const std::string& about) {
  const std::vector<LikelihoodSummary> methods = summarise(results);
  const std::vector<std::string> warnings = warnings_of(summary);
  summary["warnings"] = warnings;
  summary["results"] = json::array();
  for (const auto& method : methods) summary["results"].push_back(to_json(method));
  std::string errors;
  for (const LikelihoodSummary& s : methods)
    errors += error_of_mean(summary.value("settings", json::object()), s,
                            s.log_likelihood.monte_carlo_std_error);
  const auto everything = std::make_shared<const EvalResults>(results);
  std::vector<ReportFile> files = {
      {"summary.json", to_text(summary)},
      {"per_image.csv", estimates_csv(results, "image", "log_likelihood")},
      {"schedule.csv", schedule_csv(results, "image")},
      {"report.html",
       [everything, methods, summary] { return page_of(*everything, methods, summary); }}};
  if (results.thumbnails.defined())
    files.emplace_back("thumbnails.npy", [everything] { return npy_text(everything->thumbnails); });
  return {std::move(results),
          Progressed(),
          json(),
          std::move(summary),
          std::move(files),
          [methods, errors, about, warnings](int width) {
            return text_of(methods, errors, width) + warning_lines(warnings, width) + about;
          }};
}

}  // namespace crais
