#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "core/spec.h"
#include "io/json.h"
#include "programs/eval_loglik/commands.h"
#include "programs/eval_loglik/stored_evaluation.h"
#include "util/error.h"
#include "util/format.h"

namespace crais {
namespace {

using nlohmann::json;

constexpr int64_t kLonger = 4;           // times as many transitions, chains or evaluations
constexpr int64_t kFewestChains = 4;     // with fewer, error bars do not cover what they should
constexpr double kShareOfData = 1 / 3.;  // of the data's error: limit for bias and chain error
constexpr double kLowAcceptance = 0.4, kHighAcceptance = 0.95;
constexpr size_t kMostNamed = 12;
constexpr const char* kRun = "run.json";

/// What is wrong with images that have a flag, and the remedy before and after a longer annealing.
struct FlagEntry {
  const char *what, *remedy, *other = "";
};
const std::map<int64_t, FlagEntry> kFlagEntries = {
    {kFewEffective,
     {"a standard error is above 0.5 nats, or there is none: a few chains carry the estimate",
      "anneal longer, which mends more than as many more chains: "}},
    {kTail,
     {"weights have too heavy a tail (Pareto k above 0.7): estimate and error are probably too low",
      "anneal longer, which mends more than as many more chains: "}},
    {kBaseFailed,
     {"the base could not be fitted; chains began from a simpler one",
      "anneal longer from where they began: ", "; or a base that always fits: --base encoder"}},
    {kMissedTarget, {"--error was not reached", "allow more --max-evals, or "}},
    {kModes,
     {"the posterior has a mode that the base does not cover",
      "anneal longer, so that chains find it: "}},
    {kApart,
     {"the bounds are more than 1 nat apart: a tail or a mode that forward chains miss, most "
      "likely",
      "anneal longer: ", "; fewer chains, each longer, find more at the same cost: --chains 4"}}};

/// The flags that would make the run longer, and those that would give it more chains.
std::pair<std::string, std::string> remedies_of(const json& settings) {
  static const std::set<std::string> kOfSteps = {"linear", "sigmoidal", "geometric", "exponential"};
  const auto more = [&](const std::string& flag) {
    const auto count = json_field<int64_t>(settings, flag, kRun);
    if (count < 1 || count > kMostCount) throw data_error(kRun, ": '", flag, "' is ", count);
    return "--" + flag + " " + std::to_string(kLonger * count);
  };
  const auto schedule = json_field<std::string>(settings, "schedule", kRun);
  std::string longer = more("steps"), chains = more("chains");
  if (kOfSteps.count(schedule.substr(0, schedule.find(':'))) == 0)
    longer = "a finer --schedule than " + schedule;
  if (!json_field<json>(settings, "budget", kRun).is_null())
    longer = chains =
        "--budget " + shortest(kLonger * json_field<double>(settings, "budget", kRun));
  return {longer, chains};
}

/// Adds the findings on one method.
void examine(const MethodTable& table, const LikelihoodSummary& s,
             const std::vector<int64_t>& indices, const json& settings, json& found) {
  const auto [longer, more_chains] = remedies_of(settings);
  const auto chains = json_field<int64_t>(settings, "chains", kRun);
  const bool anneals = s.transitions.has_value();
  const bool is_tuned = json_field<std::string>(settings, "step-size", kRun) == "adapt";
  const auto add = [&](const std::string& what, const std::string& remedy, double times,
                       const std::vector<int64_t>& images = {}) {
    found.push_back({{"what", s.method + ": " + what},
                     {"images", images},
                     {"remedy", remedy},
                     {"evaluations_per_image", times > 0 ? json(times * s.evaluations) : json()}});
  };
  const std::vector<int64_t> flags = table.any_flags();
  for (const auto& [flag, entry] : kFlagEntries) {
    std::vector<int64_t> images;
    for (size_t i = 0; i < indices.size(); ++i)
      if (flags[i] & flag) images.push_back(indices[i]);
    if (images.empty()) continue;
    if (anneals)
      add(entry.what, entry.remedy + longer + entry.other, kLonger, images);
    else
      add(entry.what, "anneal from this base instead of sampling from it: --method ais", 0, images);
  }
  const double data = s.log_likelihood.data_std_error;
  const double error = s.log_likelihood.monte_carlo_std_error, whole = std::hypot(data, error);
  if (std::abs(s.bias) > kShareOfData * whole)
    add("the mean is expected to be " + significant(std::abs(s.bias), 2) +
            " nats too low, against an error of " + significant(whole, 2),
        anneals ? "anneal longer: " + longer + "; bias also falls as one over the chains"
                : "anneal: --method ais",
        anneals ? kLonger : 0);
  if (error > kShareOfData * data)
    add("the chains' error of the mean (" + significant(error, 2) +
            ") counts beside that of the images (" + significant(data, 2) + ")",
        "more chains, or more images at as many: " + more_chains, kLonger);
  if (anneals && chains < kFewestChains && more_chains.rfind("--chains", 0) == 0)
    add("an error bar from " + std::to_string(chains) + " chains is not reliable", more_chains,
        kLonger);
  const double accept = s.accept_prob.value_or(kLowAcceptance);
  if (accept < kLowAcceptance || (accept > kHighAcceptance && !is_tuned))
    add("the mean acceptance is " + fixed(accept, 2) + ": steps are too " +
            (accept < kLowAcceptance ? "long" : "short"),
        is_tuned ? "--kernel hmc, or more of its --leapfrog steps"
                 : "let a pilot tune them: --step-size adapt",
        1);
  if (s.num_nonfinite > 0)
    add(with_commas(s.num_nonfinite) +
            " proposals had no finite density and were rejected; estimates stay valid",
        "shorter steps, or --dtype float64, if they are many", 1);
}

}  // namespace

std::string sentence_of(const json& finding) {
  const json &images = finding["images"], &evaluations = finding["evaluations_per_image"];
  std::string text = finding["what"].get<std::string>() + ".";
  for (size_t i = 0; i < std::min(images.size(), kMostNamed); ++i)
    text += (i > 0 ? ", " : " Images ") + images[i].dump();
  if (images.size() > kMostNamed)
    text += ", ... (" + std::to_string(images.size()) + " in per_image.csv)";
  text += (images.empty() ? " Remedy: " : ". Remedy: ") + finding["remedy"].get<std::string>();
  if (!evaluations.is_null())
    text += " (" + with_commas(std::llround(evaluations.get<double>())) + " evaluations an image)";
  return text + ".";
}

json diagnose(const EvalResults& results, const json& run) {
  json found = json::array();
  const std::vector<LikelihoodSummary> summaries = summarise(results);
  const json settings = json_field<json>(run, "settings", kRun);
  size_t m = 0;
  for (const MethodTable& table : tables(results))
    examine(table, summaries[m++], indices_of(results), settings, found);
  const json images = json_field<json>(run, "images", kRun);
  if (const auto warning = images.find("binarisation_warning");
      warning != images.end() && warning->is_string() && *warning != "")
    found.push_back({{"what", "the images are not as in training: " + warning->get<std::string>()},
                     {"images", json::array()},
                     {"remedy", "evaluate them as the model was trained, without --binarisation"},
                     {"evaluations_per_image", nullptr}});
  return found;
}

int diagnose_evaluation(const CommandLine& cli) {
  refuse_flags_of_runs(cli, "diagnose", {});
  if (cli.operands().size() != 2)
    throw argument_error("diagnose takes one result folder: eval-loglik diagnose DIR");
  const StoredEvaluation whole = read_whole_evaluation(cli.operands()[1]);
  const json found = diagnose(whole.results, whole.run);
  RunReport report;
  report.summary = {{"program", "eval-loglik diagnose"}, {"results", found}};
  report.text = [&](int width) {
    std::string text = found.empty() ? "Nothing is wrong that chains can tell.\n" : "";
    for (const json& finding : found) text += wrapped(sentence_of(finding), width) + "\n";
    return text;
  };
  print(report, "", cli.text("format"), stdout_width());
  return found.empty() ? 0 : 1;
}

}  // namespace crais
