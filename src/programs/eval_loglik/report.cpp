#include "programs/eval_loglik/report.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>

#include "evaluation/comparison.h"
#include "evaluation/control.h"
#include "io/json.h"
#include "programs/eval_loglik/commands.h"
#include "programs/eval_loglik/settings.h"
#include "report/pictures.h"
#include "util/error.h"
#include "util/format.h"

namespace crais {
namespace {

using nlohmann::json;

constexpr size_t kExtremes = 12;      // pictures of the least and of the most probable images
constexpr size_t kMostFlagged = 200;  // pictures of flagged images; per_image.csv lists the others

json to_json(const LikelihoodSummary& s) {
  json object = to_json(s, "image");
  object["log_likelihood"] = json_number(s.log_likelihood.mean);
  object["data_std_error"] = json_number(s.log_likelihood.data_std_error);
  object["monte_carlo_std_error"] = json_number(s.log_likelihood.monte_carlo_std_error);
  object["bits_per_dim"] = json_number(s.bits_per_dim);
  return object;
}

json to_json(const Control& c) {
  const auto hardness = [](const Hardness& h) -> json {
    return {{"ess", json_number(h.ess)}, {"std_error", json_number(h.std_error)}};
  };
  return {{"images", c.images},
          {"lower", json_number(c.lower)},
          {"upper", json_number(c.upper)},
          {"gap", json_number(c.gap)},
          {"gap_std_error", json_number(c.gap_std_error)},
          {"excess", json_number(c.excess)},
          {"missed", c.missed},
          {"evaluations", c.evaluations},
          {"simulated", hardness(c.simulated)},
          {"real", hardness(c.real)}};
}

/// What the control says, in two sentences.
std::string sentence_of_control(const std::optional<Control>& control, const json& summary) {
  if (!control) {
    const json none = summary.value("control", json::object()).value("none", json());
    return none.is_string() ? "Control: none, for " + none.get<std::string>() + ".\n" : "";
  }
  const Control& c = *control;
  return "Control: on " + with_commas(c.images) + " images that the model draws, log p(x) lies " +
         "between " + fixed(c.lower, 3) + " and " + fixed(c.upper, 3) + " on average, a gap of " +
         significant(c.gap, 2) + " +- " + significant(c.gap_std_error, 2) + " nats, for " +
         with_commas(std::llround(c.evaluations / static_cast<double>(c.images))) +
         " evaluations each. Medians there, and of these images: ESS " + fixed(c.simulated.ess, 2) +
         " and " + fixed(c.real.ess, 2) + ", MC error " + significant(c.simulated.std_error, 2) +
         " and " + significant(c.real.std_error, 2) + " nats.\n";
}

/// Tables of the methods and, for methods with two bounds, of the bounds.
NotedTables result_tables(const std::vector<LikelihoodSummary>& methods,
                          const std::optional<Control>& control, const json& summary) {
  Table means("Mean log-likelihood, nats", /*names=*/1);
  const auto is_coupled = [](const LikelihoodSummary& s) {
    return s.certificate && s.certificate->exactness;
  };
  const bool are_real = std::any_of(methods.begin(), methods.end(), is_coupled);
  Table bounds(std::string("Bounds on the mean log p(x) of these ") +
               (are_real ? "" : "simulated ") + "images, nats");
  std::string errors;
  for (const LikelihoodSummary& s : methods) {
    const auto& [mean, data_error, chains_error] = s.log_likelihood;
    Table::NamedCells own = {{"log p(x)", fixed(mean, 3)},
                             {"data SE", fixed(data_error, 3)},
                             {"MC SE", known_or_dash(chains_error)},
                             {"bias", known_or_dash(s.bias)}};
    if (control) own.emplace_back("control", s.transitions ? significant(control->gap, 2) : "-");
    means.add_row(row_of(s, "image", own));
    if (s.certificate) bounds.add_row(bounds_of(s, mean));
    errors += doubts_of(s);
  }
  const char* const reading =
      "A lower bound holds on average: E[estimate] <= log p(x). data SE comes from the choice of "
      "images, MC SE from the random chains; the mean is expected to be off by bias.";
  NotedTables shown = {{means, {reading, sentence_of_control(control, summary), errors}}};
  if (!bounds.rows().empty())
    shown.push_back(
        {bounds,
         {are_real ? "The truth lies between the bounds on average, as far as the draws "
                     "that reverse chains start from are exact: with probability 1 - "
                     "distance each, or more, if chains have met all modes."
                   : "The truth lies between the bounds on average. The gap certifies "
                     "these settings for images like these."}});
  return shown;
}

Table details_table(const std::vector<LikelihoodSummary>& methods) {
  Table details("Details", /*names=*/1);
  for (const LikelihoodSummary& s : methods)
    details.add_row(details_of(s, "image", {{"bits/dim", fixed(s.bits_per_dim, 4)}}));
  return details;
}

}  // namespace

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

namespace {

/// The bytes as text, with padding.                                                  [RFC 4648]
std::string to_base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t start = 0; start < bytes.size(); start += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - start);
    uint32_t group = 0;  // 24 bits
    for (size_t i = 0; i < count; ++i)
      group |= uint32_t{static_cast<unsigned char>(bytes[start + i])} << (16 - 8 * i);
    for (size_t i = 0; i < 4; ++i) text += i <= count ? kDigits[group >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

/// Data URLs by index: the least and the most probable images by the first method, and its flagged.
json pictures_of(const EvalResults& results) {
  json pictures = json::object();
  if (!results.thumbnails.defined()) return pictures;
  const ImageEstimates estimates(tables(results).front());
  const std::vector<double>& value = estimates.value;
  std::vector<size_t> order(value.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // Values that are not numbers come first: they have no order.
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::isnan(value[a]) ? !std::isnan(value[b]) : value[a] < value[b];
  });
  const std::vector<int64_t> indices = indices_of(results);
  size_t num_flagged = 0;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const size_t i = order[rank];
    const bool is_extreme = rank < kExtremes || rank + kExtremes >= order.size();
    const bool is_shown = estimates.flagged[i] && ++num_flagged <= kMostFlagged;
    if (is_extreme || is_shown)
      pictures[std::to_string(indices[i])] =
          "data:image/png;base64," + to_base64(png_of(results.thumbnails[static_cast<int64_t>(i)]));
  }
  return pictures;
}

/// The path of the model in a summary.json; "MODEL" if it has none.
std::string model_path(const json& summary) {
  for (const char* kind : {"checkpoint", "model"})
    if (const json model = summary.value(kind, json::object()); model.contains("path"))
      if (model["path"].is_string()) return model["path"];
  return "MODEL";
}

}  // namespace

RunReport report_of(EvalResults results, json summary, const std::string& about) {
  const std::optional<Control> control = control_of(results, results.error, results.is_error_asked);
  std::vector<LikelihoodSummary> methods = summarise(results);
  for (LikelihoodSummary& s : methods)
    if (control && s.transitions)
      for (const Doubt doubt : control->doubts) s.doubts.push_back(entry_of(doubt));
  const std::vector<std::string> warnings = warnings_of(summary);
  summary["warnings"] = warnings;
  summary["results"] = json::array();
  for (const auto& method : methods) summary["results"].push_back(to_json(method));
  if (control) summary["control"].update(to_json(*control));
  const NotedTables tables = result_tables(methods, control, summary);
  const Table details = details_table(methods);
  const auto everything = std::make_shared<const EvalResults>(results);
  const auto page = [=] {
    const std::string model = model_path(summary);
    RunPage page{"Log-likelihood" + (model == "MODEL" ? "" : " of " + model), "image", "log p(x)"};
    page.command = command_of(eval_loglik_synopsis(), {model}, summary.at("settings"));
    page.tables = tables;
    page.tables.push_back({details, {}});
    for (const LikelihoodSummary& s : methods)
      if (!s.doubts.empty()) page.findings.push_back(doubts_of(s));
    for (const json& finding : diagnose(*everything, summary))
      page.findings.push_back(sentence_of(finding));
    page.pictures = pictures_of(*everything);
    return html_of(page, *everything, summary);
  };
  std::vector<ReportFile> files = {
      {"summary.json", [text = to_text(summary)] { return text; }},
      {"per_image.csv", [=] { return estimates_csv(*everything, "image", "log_likelihood"); }},
      {"schedule.csv", [=] { return schedule_csv(*everything, "image"); }},
      {"report.html", page}};
  return {std::move(results),
          {},
          {},
          std::move(summary),
          std::move(files),
          [=](int width) {
            return text_of(tables, width) + warning_lines(warnings, width) + wrapped(about, width);
          },
          [=](int width) { return details.text(width); }};
}

}  // namespace crais
