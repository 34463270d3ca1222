#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <set>
#include <utility>

#include "evaluation/comparison.h"
#include "io/csv.h"
#include "io/json.h"
#include "programs/eval_loglik/commands.h"
#include "programs/eval_loglik/stored_evaluation.h"
#include "report/table.h"
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
    WholeEvaluation whole = read_whole_evaluation(name);
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
      throw argument_error(names + " have different images, or kinds of p(x) (" +
                           differences(images, others, {"binarisation_warning"}) +
                           "); a comparison is paired by image: evaluate both on the same --split, "
                           "--indices and --limit");
  if (indices_of(first.results) != indices_of(other.results))
    throw data_error(names + ": name other images than their run.json");
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
struct Report {
  Table table{{"pair", "method", "first", "second", "difference", "SE", "95% interval",
               "unpaired SE", "MC SE", "bias", "better", "clearly better", "clearly worse"},
              "Mean log p(x) and its differences, nats an image",
              /*names=*/2};
  json results = json::array();
  CsvWriter csv{{"image", "method", "pair", "first", "second", "difference", "std_error"}};
};

void add_pair(Report& report, const ComparedModel& first, const ComparedModel& second,
              const MethodTable& in_first, const MethodTable& in_second) {
  const ImageEstimates one(in_first), two(in_second);
  const Comparison c = compare(one, two);
  const auto [mean, data_error, chains_error] = c.difference;
  const std::string pair = first.label + " - " + second.label, &method = in_first.method;
  const auto mean_of = [](const ImageEstimates& e) {
    return fixed(at::tensor(e.value, at::kDouble).mean().item<double>(), 3);
  };
  report.table.add_row(
      {pair, method, mean_of(one), mean_of(two), fixed(mean, 3), significant(data_error, 2),
       std::isfinite(c.low) ? fixed(c.low, 3) + " to " + fixed(c.high, 3) : "unknown",
       significant(c.unpaired_std_error, 2), significant(chains_error, 2), known_or_dash(c.bias),
       fixed(100 * c.share_better, 1) + "%", with_commas(c.clearly_better),
       with_commas(c.clearly_worse)});
  report.results.push_back(
      {{"a", first.label},
       {"b", second.label},
       {"method", method},
       {"images", c.per_image.size()},
       {"difference", json_number(mean)},
       {"data_std_error", json_number(data_error)},
       {"monte_carlo_std_error", json_number(chains_error)},
       {"interval_low", json_number(c.low)},
       {"interval_high", json_number(c.high)},
       {"unpaired_std_error", json_number(c.unpaired_std_error)},
       {"estimated_bias", json_number(c.bias)},
       {"share_better", c.share_better},
       {"share_std_error", c.share_std_error},
       {"clearly_better", c.clearly_better},
       {"clearly_worse", c.clearly_worse},
       {"flagged", c.flagged},
       {"unflagged_difference", c.unflagged ? json_number(c.unflagged->mean) : json()},
       {"verdict", verdict(c, first.label, second.label)}});
  const std::vector<int64_t> indices = indices_of(first.results);
  for (size_t i = 0; i < indices.size(); ++i)
    report.csv.add_row(
        {indices[i], method, pair, one.value[i], two.value[i], c.per_image[i], c.std_error[i]});
}

}  // namespace

int compare_evaluations(const CommandLine& cli) {
  const std::vector<std::string> names(cli.operands().begin() + 1, cli.operands().end());
  if (names.size() < 2 || names.size() > kMostModels)
    throw argument_error("compare takes 2 to " + std::to_string(kMostModels) +
                         " result folders or models: eval-loglik compare A B");
  if (std::all_of(names.begin(), names.end(), is_folder))
    refuse_flags_of_runs(cli, "compare", {"out", "overwrite"});
  const fs::path out = cli.text("out", ""), json_file = out / "comparison.json";
  if (out.empty()) {
    cli.refuse_idle("overwrite", "without --out DIR");
  } else {
    make_output_folder(out);
    std::error_code ignored;
    if (fs::exists(json_file, ignored) && !cli.flag("overwrite") && !cli.flag("resume"))
      throw argument_error(out.string() +
                           " holds a comparison already; replace it with "
                           "--overwrite, or choose another --out");
  }
  std::vector<ComparedModel> models;
  json summary = {{"program", "eval-loglik compare"}, {"crais", crais_version()}};
  summary["models"] = summary["warnings"] = json::array();
  for (const std::string& name : names) {
    models.push_back(compared(cli, name, std::string(1, char('A' + models.size()))));
    const ComparedModel &first = models.front(), &model = models.back();
    check_comparable(first, model);
    summary["models"].push_back({{"label", model.label}, {"path", name}, {"run", model.run}});
    const std::string other =
        differences(first.run.at("settings"), model.run.at("settings"), kOfImages);
    if (!other.empty())
      summary["warnings"].push_back(first.label + " and " + model.label +
                                    " were not evaluated alike (" + other +
                                    "): their biases may differ more than the chains suggest");
  }
  Report report;
  for (size_t a = 0; a < models.size(); ++a)
    for (size_t b = a + 1; b < models.size(); ++b)
      for (const MethodTable& one : tables(models[a].results))
        for (const MethodTable& two : tables(models[b].results))
          if (one.method == two.method) add_pair(report, models[a], models[b], one, two);
  if (report.results.empty())
    throw argument_error(
        "the runs have no --method in common; evaluate all models by the same method");
  summary["results"] = report.results;
  if (!out.empty()) {
    write_file_atomic(out / "per_image.csv", report.csv.text());
    write_file_atomic(json_file, to_text(summary));
  }
  if (print_for_programs(summary, parse_format(cli.text("format")))) return 0;
  const int width = stdout_width();
  for (const ComparedModel& model : models) std::cout << model.label << ": " << model.name << "\n";
  std::cout << report.table.text(width);
  for (const json& result : report.results) std::cout << wrapped(result["verdict"], width);
  std::cout << warning_lines(warnings_of(summary), width);
  if (!out.empty()) std::cout << "Files: " << out.string() << "/comparison.json, per_image.csv\n";
  std::cout << std::flush;
  return 0;
}

}  // namespace crais
