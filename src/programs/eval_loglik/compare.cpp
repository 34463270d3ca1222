#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <set>
#include <utility>
#include <vector>

#include "evaluation/comparison.h"
#include "io/csv.h"
#include "io/json.h"
#include "programs/eval_loglik/commands.h"
#include "programs/eval_loglik/eval_run.h"
#include "programs/eval_loglik/stored_evaluation.h"
#include "report/run_report.h"
#include "util/error.h"
#include "util/files.h"
#include "util/format.h"
#include "util/version.h"

namespace crais {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t kMostModels = 26;  // the letters that name them

/// Settings for the place of images, which are not compared: the digests of the images are.
const std::set<std::string> kOfImages = {"data",  "labels",  "split",      "binarisation", "scale",
                                         "limit", "indices", "dequantise", "simulate"};

struct ComparedModel {
  std::string label, name;  // "A", and its folder or file
  json run;                 // its run.json
  RunResults results;
};

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

/// The results of a folder, or of a model that is evaluated in a folder of its own below --out.
ComparedModel compared(const CommandLine& cli, const std::string& name, const std::string& label) {
  if (is_folder(name)) {
    StoredEvaluation whole = read_whole_evaluation(name);
    return {label, name, std::move(whole.run), std::move(whole.results)};
  }
  EvalSettings settings = read_settings(cli, name);
  if (settings.dry_run) throw argument_error("--dry-run: compare has no dry run");
  if (settings.shard.count > 1)
    throw argument_error("--shard: compare needs every image; evaluate shards first, and merge");
  if (!settings.out.empty()) settings.out = (fs::path(settings.out) / label).string();
  if (!settings.quiet) std::cerr << label << ": " << name << "\n";
  std::optional<RunReport> report = evaluate_model(settings);
  return {label, name, std::move(report->run), std::move(report->results)};
}

/// "chains 4 and 8, seed 0 and 1": how two objects differ in the keys of both.
std::string differences(const json& one, const json& two, const std::set<std::string>& but) {
  std::string all;
  for (const auto& [key, value] : one.items())
    if (but.count(key) == 0 && two.contains(key) && two[key] != value)
      all += (all.empty() ? "" : ", ") + key + " " + value.dump() + " and " + two[key].dump();
  return all;
}

/// Throws Error kArgument unless both have the same images and the same kind of p(x).
void check_comparable(const ComparedModel& first, const ComparedModel& other) {
  const json &images = first.run.at("images"), &others = other.run.at("images");
  const std::string names = first.name + " and " + other.name;
  for (const char* key : {"sha256", "quantity", "bits_offset"})
    if (!images.contains(key) || images[key] != others.value(key, json()))
      throw argument_error(names, " have different images, or kinds of p(x) (",
                           differences(images, others, {"binarisation_warning"}),
                           "); a comparison is paired by image: evaluate both on the same --split, "
                           "--indices and --limit");
  if (indices_of(first.results) != indices_of(other.results))
    throw data_error(names, ": name other images than their run.json");
}

/// A sentence that names the better model, how certain the difference is, and its other possible
/// causes.
std::string verdict(const Comparison& c, const std::string& a, const std::string& b) {
  const MeanEstimate& d = c.difference;
  std::string text = a + " - " + b + " is " + with_error(d.mean, d.data_std_error) +
                     " nats an image: " +
                     (c.low > 0    ? a + " is better"
                      : c.high < 0 ? b + " is better"
                                   : "no difference is seen") +
                     ".";
  const double chains = 2 * d.monte_carlo_std_error;
  if (std::abs(d.mean) <= chains)
    text += " The chains' own error is as large as the difference: evaluate both with more chains.";
  else if (d.mean * c.bias > 0 && std::abs(d.mean) <= 2 * std::abs(c.bias) + chains)
    text +=
        " The estimates' own biases could explain it: evaluate both with more chains or "
        "temperatures.";
  if (c.unflagged)
    text += " Without " + with_commas(c.flagged) +
            " images that are flagged in one or both it is " +
            with_error(c.unflagged->mean, c.unflagged->data_std_error) + ".";
  else if (c.flagged > 0)
    text += " Every image is flagged in one or both: neither estimate is to be trusted.";
  return text;
}

/// What is found: for people, for comparison.json and for per_image.csv.
struct Findings {
  Table table{"Mean log p(x) and its differences, nats an image", /*names=*/2};
  json results = json::array();
  CsvWriter csv{{"image", "method", "pair", "first", "second", "difference", "std_error"}};
};

void add_pair(Findings& found, const ComparedModel& first, const ComparedModel& second,
              const MethodTable& in_first, const MethodTable& in_second) {
  const ImageEstimates one(in_first), two(in_second);
  const Comparison c = compare(one, two);
  const auto [mean, data_error, chains_error] = c.difference;
  const std::string &a = first.label, &b = second.label, pair = a + " - " + b;
  json result = {{"a", a}, {"b", b}, {"method", in_first.method}};
  Table::NamedCells row = {{"pair", pair}, {"method", in_first.method}};
  for (const auto& [header, e] : {std::pair{"first", &one}, {"second", &two}})
    row.emplace_back(header, fixed(at::tensor(e->value, at::kDouble).mean().item<double>(), 3));
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
  found.table.add_row(row);
  found.results.push_back(std::move(result));
  const std::vector<int64_t> indices = indices_of(first.results);
  for (size_t i = 0; i < indices.size(); ++i)
    found.csv.add_row({indices[i], in_first.method, pair, one.value[i], two.value[i],
                       c.per_image[i], c.std_error[i]});
}

}  // namespace

int compare_evaluations(const CommandLine& cli) {
  const std::vector<std::string> names(cli.operands().begin() + 1, cli.operands().end());
  if (names.size() < 2 || names.size() > kMostModels)
    throw argument_error("compare takes 2 to ", kMostModels,
                         " result folders or models: eval-loglik compare A B");
  if (std::all_of(names.begin(), names.end(), is_folder))
    refuse_flags_of_runs(cli, "compare", {"out", "overwrite"});
  const std::string out = cli.text("out", "");
  if (out.empty()) {
    cli.refuse_idle("overwrite", "without --out DIR");
  } else {
    make_output_folder(out);
    std::error_code ignored;
    if (fs::exists(fs::path(out) / "comparison.json", ignored) && !cli.flag("overwrite") &&
        !cli.flag("resume"))
      throw argument_error(
          out, " holds a comparison already; replace it with --overwrite, or choose another --out");
  }
  std::vector<ComparedModel> models;
  std::string listed;
  json summary = {{"program", "eval-loglik compare"}, {"crais", crais_version()}};
  summary["models"] = summary["warnings"] = json::array();
  for (const std::string& name : names) {
    models.push_back(compared(cli, name, std::string(1, char('A' + models.size()))));
    const ComparedModel &first = models.front(), &model = models.back();
    check_comparable(first, model);
    listed += model.label + ": " + name + "\n";
    summary["models"].push_back({{"label", model.label}, {"path", name}, {"run", model.run}});
    const std::string other =
        differences(first.run.at("settings"), model.run.at("settings"), kOfImages);
    if (!other.empty())
      summary["warnings"].push_back(first.label + " and " + model.label +
                                    " were not evaluated alike (" + other +
                                    "): their biases may differ more than the chains suggest");
  }
  Findings found;
  for (auto a = models.begin(); a != models.end(); ++a)
    for (auto b = a + 1; b != models.end(); ++b)
      for (const MethodTable& one : tables(a->results))
        for (const MethodTable& two : tables(b->results))
          if (one.method == two.method) add_pair(found, *a, *b, one, two);
  if (found.results.empty())
    throw argument_error(
        "the runs have no --method in common; evaluate all models by the same method");
  summary["results"] = found.results;
  RunReport report;
  report.summary = summary;
  report.files = {{"comparison.json", [&] { return to_text(summary); }},
                  {"per_image.csv", [&] { return found.csv.text(); }}};
  report.text = [&](int width) {
    std::string text = listed + found.table.text(width);
    for (const json& result : found.results) text += wrapped(result["verdict"], width);
    return text + warning_lines(warnings_of(summary), width);
  };
  if (!out.empty()) write_files(report, out);
  print(report, out, cli.text("format"), stdout_width());
  return 0;
}

}  // namespace crais
