#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "io/json.h"
#include "programs/eval_loglik/commands.h"
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
  int64_t flag;
  const char *what, *remedy, *other = "";
};
constexpr const char* kLongerMends = "anneal longer, which mends more than as many more chains: ";
const FlagEntry kFlagEntries[] = {
    {kFewEffective,
     "a standard error is above 0.5 nats, or there is none: a few chains carry the estimate",
     kLongerMends},
    {kTail,
     "weights have too heavy a tail (Pareto k above 0.7): estimate and error are probably too low",
     kLongerMends},
    {kBaseFailed, "the base could not be fitted; chains began from a simpler one",
     "anneal longer from where they began: ", "; or a base that always fits: --base encoder"},
    {kMissedTarget, "--error was not reached", "allow more --max-evals, or "},
    {kModes, "the posterior has a mode that the base does not cover",
     "anneal longer, so that chains find it: "},
    {kApart,
     "coupled chains meet late or never: the posterior has modes that chains do not leave, or a "
     "neck, and the upper bound is none",
     kLongerMends},
    {kGap,
     "the bounds are more than 1 nat apart: a tail or a mode that forward chains miss, most likely",
     "anneal longer: ", "; fewer chains, each longer, find more at the same cost: --chains 4"}};

/// The flags that would make the run longer, and those that would give it more chains.
std::pair<std::string, std::string> remedies_of(const json& settings) {
  static const std::set<std::string> kOfSteps = {"linear", "sigmoidal", "geometric", "exponential"};
  const auto more = [&](const std::string& flag) {
    return "--" + flag + " " + fixed(kLonger * json_field<double>(settings, flag, kRun), 0);
  };
  if (!json_field<json>(settings, "budget", kRun).is_null())
    return {more("budget"), more("budget")};
  const auto schedule = json_field<std::string>(settings, "schedule", kRun);
  const bool has_steps = kOfSteps.count(schedule.substr(0, schedule.find(':'))) > 0;
  return {has_steps ? more("steps") : "a finer --schedule than " + schedule, more("chains")};
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
  for (const auto& [flag, what, remedy, other] : kFlagEntries) {
    std::vector<int64_t> images;
    for (size_t i = 0; i < indices.size(); ++i)
      if (flags[i] & flag) images.push_back(indices[i]);
    if (!images.empty())
      add(what,
          anneals ? remedy + longer + other
                  : "anneal from this base instead of sampling from it: --method ais",
          anneals ? kLonger : 0, images);
  }
  const auto [mean, data, error] = s.log_likelihood;
  const double whole = std::hypot(data, error);
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
    add(c10::str("an error bar from ", chains, " chains is unreliable"), more_chains, kLonger);
  const double accept = s.accept_prob.value_or(kLowAcceptance);
  if (accept < kLowAcceptance || (accept > kHighAcceptance && !is_tuned))
    add("the mean acceptance is " + fixed(accept, 2) + ": steps are too " +
            (accept < kLowAcceptance ? "long" : "short"),
        is_tuned ? "--kernel hmc, or more of its --leapfrog steps"
                 : "let a pilot tune them: --step-size adapt",
        1);
}

}  // namespace

std::string sentence_of(const json& finding) {
  const json &images = finding["images"], &evaluations = finding["evaluations_per_image"];
  std::string text = finding["what"].get<std::string>() + ".";
  for (size_t i = 0; i < std::min(images.size(), kMostNamed); ++i)
    text += (i > 0 ? ", " : " Images ") + images[i].dump();
  if (images.size() > kMostNamed) text += c10::str(", ... (", images.size(), " in per_image.csv)");
  text += (images.empty() ? " Remedy: " : ". Remedy: ") + finding["remedy"].get<std::string>();
  if (!evaluations.is_null())
    text += " (" + with_commas(std::llround(evaluations.get<double>())) + " evaluations an image)";
  return text + ".";
}

json diagnose(const EvalResults& results, const json& run) {
  json found = json::array();
  const std::vector<LikelihoodSummary> summaries = summarise(results);
  size_t m = 0;
  for (const MethodTable& table : tables(results))
    examine(table, summaries[m++], indices_of(results), json_field<json>(run, "settings", kRun),
            found);
  const json as = json_field<json>(run, "images", kRun).value("binarisation_warning", json());
  if (as.is_string() && as != "")
    found.push_back({{"what", "the images are not as in training: " + as.get<std::string>()},
                     {"images", json::array()},
                     {"remedy", "evaluate them as the model was trained, without --binarisation"},
                     {"evaluations_per_image", nullptr}});
  return found;
}

int diagnose_evaluation(const CommandLine& cli) {
  const StoredEvaluation whole = read_whole_evaluation(folders_of(cli, "diagnose", 1, 1).front());
  const json found = diagnose(whole.results, whole.run);
  RunReport report{.summary = {{"program", "eval-loglik diagnose"}, {"results", found}}};
  report.text = [&](int width) {
    std::string text = found.empty() ? "Nothing is wrong that chains can tell.\n" : "";
    for (const json& finding : found) text += wrapped(sentence_of(finding), width) + "\n";
    return text;
  };
  print(report, "", cli.text("format"), stdout_width());
  return found.empty() ? 0 : 1;
}

}  // namespace crais
