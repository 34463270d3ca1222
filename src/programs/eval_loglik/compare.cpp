#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "evaluation/comparison.h"
#include "io/json.h"
#include "programs/eval_loglik/commands.h"
#include "util/error.h"
#include "util/format.h"
#include "util/version.h"

namespace crais {
namespace {

using nlohmann::json;

/// Settings for the place of images, which are not compared: the digests of the images are.
const std::set<std::string> kOfImages = {"data",  "labels",  "split",      "binarisation", "scale",
                                         "limit", "indices", "dequantise", "simulate"};

/// "chains 4 and 8, seed 0 and 1": how two objects differ in the keys of both.
std::string differences(const json& one, const json& two, const std::set<std::string>& but) {
  std::string all;
  for (const auto& [key, value] : one.items())
    if (but.count(key) == 0 && two.contains(key) && two[key] != value)
      all += (all.empty() ? "" : ", ") + key + " " + value.dump() + " and " + two[key].dump();
  return all;
}

/// Throws Error kArgument unless both have the same images and the same kind of p(x).
void check_comparable(const json& images, const json& others, const std::string& folders) {
  for (const char* key : {"sha256", "quantity", "bits_offset"})
    if (!images.contains(key) || images[key] != others.value(key, json()))
      throw argument_error(folders, " have different images, or kinds of p(x) (",
                           differences(images, others, {"binarisation_warning"}),
                           "); a comparison is paired by image: evaluate both on the same --split, "
                           "--indices and --limit");
}

/// A sentence that names the better model, how certain the difference is, and its other possible
/// causes.
std::string verdict(const Comparison& c, const std::string& a, const std::string& b) {
  const MeanEstimate& d = c.difference;
  const auto estimate = [](const MeanEstimate& e) { return with_error(e.mean, e.data_std_error); };
  std::string text = a + " - " + b + " is " + estimate(d) + " nats an image: " +
                     (c.low > 0    ? a + " is better."
                      : c.high < 0 ? b + " is better."
                                   : "no difference is seen.");
  const double chains = 2 * d.monte_carlo_std_error;
  if (std::abs(d.mean) <= chains)
    text += " The chains' own error is as large as the difference: evaluate both with more chains.";
  else if (d.mean * c.bias > 0 && std::abs(d.mean) <= 2 * std::abs(c.bias) + chains)
    text +=
        " The estimates' own biases could explain it: evaluate both with more chains or "
        "temperatures.";
  if (c.unflagged)
    text += " Without " + with_commas(c.flagged) +
            " images that are flagged in one or both it is " + estimate(*c.unflagged) + ".";
  else if (c.flagged > 0)
    text += " Every image is flagged in one or both: neither estimate is to be trusted.";
  return text;
}

/// What is found of a pair by one method: for programs, and a row of the table.
json findings(const std::string& a, const std::string& b, const MethodTable& of_a,
              const MethodTable& of_b, Table& table) {
  const ImageEstimates one(of_a), two(of_b);
  const Comparison c = compare(one, two);
  const auto [mean, data_error, chains_error] = c.difference;
  const auto mean_of = [](const ImageEstimates& each) {
    return fixed(at::tensor(each.value, at::kDouble).mean().item<double>(), 3);
  };
  json result = {{"a", a}, {"b", b}, {"method", of_a.method}};
  Table::NamedCells row = {{"pair", a + " - " + b},
                           {"method", of_a.method},
                           {"first", mean_of(one)},
                           {"second", mean_of(two)}};
  const auto put = [&](const char* key, const json& value, const char* header = nullptr,
                       const std::string& text = {}) {
    result[key] = value;
    if (header) row.emplace_back(header, text);
  };
  put("images", c.per_image.size());
  put("difference", json_number(mean), "difference", fixed(mean, 3));
  put("data_std_error", json_number(data_error), "SE", significant(data_error, 2));
  put("interval_low", json_number(c.low));
  put("interval_high", json_number(c.high), "95% interval",
      std::isfinite(c.low) ? fixed(c.low, 3) + " to " + fixed(c.high, 3) : "unknown");
  put("unpaired_std_error", json_number(c.unpaired_std_error), "unpaired SE",
      significant(c.unpaired_std_error, 2));
  put("monte_carlo_std_error", json_number(chains_error), "MC SE", significant(chains_error, 2));
  put("estimated_bias", json_number(c.bias), "bias", known_or_dash(c.bias));
  put("share_better", c.share_better, "better", fixed(100 * c.share_better, 1) + "%");
  put("share_std_error", c.share_std_error);
  put("clearly_better", c.clearly_better, "clearly better", with_commas(c.clearly_better));
  put("clearly_worse", c.clearly_worse, "clearly worse", with_commas(c.clearly_worse));
  put("flagged", c.flagged);
  put("unflagged_difference", c.unflagged ? json_number(c.unflagged->mean) : json());
  put("verdict", verdict(c, a, b));
  table.add_row(row);
  return result;
}

}  // namespace

int compare_evaluations(const CommandLine& cli) {
  const std::vector<std::string> folders = folders_of(cli, "compare", 2, /*most=*/26);
  std::vector<std::pair<std::string, StoredEvaluation>> models;  // by their labels, A to Z
  std::string listed;
  RunReport report;
  json& summary = report.summary;
  summary = {{"program", "eval-loglik compare"}, {"crais", crais_version()}};
  summary["models"] = summary["warnings"] = summary["results"] = json::array();
  for (const std::string& folder : folders) {
    const std::string label(1, char('A' + models.size()));
    models.emplace_back(label, read_whole_evaluation(folder));
    const json &run = models.back().second.run, &first = models.front().second.run;
    check_comparable(first.at("images"), run.at("images"), folders.front() + " and " + folder);
    listed += label + ": " + folder + "\n";
    summary["models"].push_back({{"label", label}, {"path", folder}, {"run", run}});
    const std::string other = differences(first.at("settings"), run.at("settings"), kOfImages);
    if (!other.empty())
      summary["warnings"].push_back("A and " + label + " were not evaluated alike (" + other +
                                    "): their biases may differ more than the chains suggest");
  }
  Table table("Mean log p(x) and its differences, nats an image", /*names=*/2);
  for (auto a = models.begin(); a != models.end(); ++a)
    for (auto b = a + 1; b != models.end(); ++b)
      for (const MethodTable& one : tables(a->second.results))
        for (const MethodTable& two : tables(b->second.results))
          if (one.method == two.method)
            summary["results"].push_back(findings(a->first, b->first, one, two, table));
  if (summary["results"].empty())
    throw argument_error(
        "the runs have no --method in common; evaluate all models by the same method");
  report.text = [&](int width) {
    std::string text = listed + table.text(width);
    for (const json& result : summary["results"]) text += wrapped(result["verdict"], width);
    return text + warning_lines(warnings_of(summary), width);
  };
  print(report, "", cli.text("format"), stdout_width());
  return 0;
}

}  // namespace crais
