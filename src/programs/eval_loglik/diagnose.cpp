#include "programs/eval_loglik/diagnose.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <optional>
#include <set>

#include "core/spec.h"
#include "io/json.h"
#include "programs/eval_loglik/commands.h"
#include "programs/eval_loglik/stored_evaluation.h"
#include "report/table.h"
#include "util/error.h"
#include "util/format.h"

namespace crais {
namespace {

using nlohmann::json;

constexpr int64_t kLonger = 4;           // times as many transitions
constexpr int64_t kFewestChains = 4;     // with fewer, error bars do not cover what they should
constexpr double kLongerAll = 1.25;      // times as many transitions of all chains together
constexpr double kShareOfData = 1 / 3.;  // of the data's error: limit for bias and chain error
constexpr double kLowAcceptance = 0.4, kHighAcceptance = 0.95;
constexpr size_t kMostNamed = 12;

/// The settings of the run, from which remedies start.
struct Asked {
  int64_t steps, chains;
  double max_evaluations;
  std::string schedule, step_size, kernel;
  std::optional<double> budget, mean_error;

  explicit Asked(const json& settings)
      : steps(count_of(settings, "steps")),
        chains(count_of(settings, "chains")),
        max_evaluations(json_field<double>(settings, "max-evals", kSource)),
        schedule(json_field<std::string>(settings, "schedule", kSource)),
        step_size(json_field<std::string>(settings, "step-size", kSource)),
        kernel(json_field<std::string>(settings, "kernel", kSource)),
        budget(number_of(settings, "budget")),
        mean_error(number_of(settings, "mean-error")) {}

  static constexpr const char* kSource = "run.json";
  static std::optional<double> number_of(const json& settings, const char* key) {
    if (json_field<json>(settings, key, kSource).is_null()) return {};
    return json_field<double>(settings, key, kSource);
  }
  static int64_t count_of(const json& settings, const char* key) {
    const auto count = json_field<int64_t>(settings, key, kSource);
    if (count < 1 || count > kMostCount)
      throw data_error(std::string(kSource) + ": '" + key + "' is " + std::to_string(count));
    return count;
  }
};

/// Examines the results of one method and suggests other settings.
class Examination {
 public:
  Examination(const EvalResults& results, const MethodTable& table,
              const LikelihoodSummary& summary, const Asked& settings)
      : table_(table),
        summary_(summary),
        asked_(settings),
        indices_(indices_of(results)),
        anneals_(summary.transitions.has_value()) {}

  std::vector<Finding> findings() {
    flags();
    bias();
    chains();
    acceptance();
    proposals();
    return std::move(findings_);
  }

 private:
  /// The images with the flag in any repeat.
  std::vector<int64_t> images_with(int64_t flag) const {
    std::vector<int64_t> images;
    for (size_t i = 0; i < indices_.size(); ++i)
      if (std::any_of(table_.flags.begin(), table_.flags.end(),
                      [&](const auto& repeat) { return (repeat[i] & flag) != 0; }))
        images.push_back(indices_[i]);
    return images;
  }

  void add(const std::string& what, std::vector<int64_t> images, const std::string& remedy,
           double evaluations) {
    findings_.push_back({summary_.method + ": " + what, std::move(images), remedy, evaluations});
  }

  /// The flags for longer annealing, which improves weights most for its cost.
  std::string longer() const {
    if (asked_.budget) return "--budget " + shortest(kLonger * *asked_.budget);
    return has_steps() ? "--steps " + std::to_string(kLonger * asked_.steps)
                       : "a finer --schedule than " + asked_.schedule + ", for " +
                             std::to_string(kLonger) + " times as many transitions";
  }

  /// The flags for `chains` chains, or for their automatic number.
  std::string chains_of(int64_t chains) const {
    if (asked_.budget) return longer();
    if (asked_.mean_error) return "--mean-error " + significant(*asked_.mean_error / 2, 2);
    return "--chains " + std::to_string(chains);
  }

  /// True if --steps sets the number of temperatures.
  bool has_steps() const {
    static const std::set<std::string> kOfSteps = {"linear", "sigmoidal", "geometric",
                                                   "exponential"};
    return kOfSteps.count(asked_.schedule.substr(0, asked_.schedule.find(':'))) > 0;
  }

  /// True if the kernel takes leapfrog steps.
  bool has_leaps() const { return asked_.kernel.find("hmc") != std::string::npos; }

  void flags() {
    for (const auto& [flag, word] : all_flags()) {
      const auto images = images_with(flag);
      if (images.empty()) continue;
      const double now = summary_.evaluations;
      switch (flag) {
        case kFewEffective:
        case kTail:
          add(flag == kTail ? "weights have too heavy a tail (Pareto k above 0.7): the estimate is "
                              "probably too low, and its error too"
                            : "a standard error is above 0.5 nats, or there is none: a few chains "
                              "carry the estimate",
              images,
              anneals_ ? "anneal longer, which mends more than as many more chains: " + longer()
                       : "anneal from this base instead of sampling from it: --method ais",
              anneals_ ? kLonger * now : 0.0);
          break;
        case kBaseFailed:
          add("the base could not be fitted; chains began from a simpler one", images,
              "anneal longer from where they began: " + longer() +
                  "; or choose a base that always fits: --base encoder, --base prior",
              kLonger * now);
          break;
        case kMissedTarget:
          add("--target-error was not reached within --max-evals", images,
              "allow more: --max-evals " + significant(kLonger * asked_.max_evaluations, 3) +
                  ", or " + longer(),
              kLonger * asked_.max_evaluations);
          break;
        case kModes:
          add("the posterior has a mode that the base does not cover", images,
              "anneal longer, so that chains find it: " + longer(), kLonger * now);
          break;
        case kApart:
          gaps(images);
          break;
      }
    }
  }

  /// Adds findings on images whose two bounds are far apart, which one bound alone cannot show.
  void gaps(const std::vector<int64_t>& images) {
    const std::string what =
        "the bounds are more than 1 nat apart: a tail or a mode that forward chains miss, most "
        "likely";
    if (!has_steps() || asked_.chains < 2 * kFewestChains || asked_.budget || asked_.mean_error)
      return add(what, images, "anneal longer: " + longer(), kLonger * summary_.evaluations);
    const double transitions =
        static_cast<double>(asked_.chains) * static_cast<double>(asked_.steps);
    const std::string wider = summary_.base == "laplace" ? " --base laplace:1.1" : "";
    add(what, images,
        "anneal fewer chains for longer: --chains " + std::to_string(kFewestChains) + " --steps " +
            std::to_string(std::llround(kLongerAll * transitions / kFewestChains)) + wider,
        kLongerAll * summary_.evaluations);
  }

  void bias() {
    const MeanEstimate& mean = summary_.log_likelihood;
    const double bound = kShareOfData * std::hypot(mean.data_std_error, mean.monte_carlo_std_error);
    if (!(std::abs(summary_.bias) > bound)) return;
    const auto factor =
        static_cast<int64_t>(std::ceil(std::abs(summary_.bias) / std::max(bound, 1e-12)));
    add("the mean is expected to be " + significant(std::abs(summary_.bias), 2) +
            " nats too low, against an error of " + significant(3 * bound, 2),
        {},
        anneals_ ? "anneal longer: " + longer() +
                       (asked_.budget ? ""
                                      : "; or " + chains_of(factor * asked_.chains) +
                                            ": bias falls as one over the chains")
                 : "anneal: --method ais",
        anneals_ ? kLonger * summary_.evaluations : 0.0);
  }

  void chains() {
    const MeanEstimate& mean = summary_.log_likelihood;
    const int64_t usual = EstimateOptions().chains;
    if (anneals_ && asked_.chains < kFewestChains && !asked_.budget && !asked_.mean_error)
      add("an error bar from " + std::to_string(asked_.chains) + " chains is not reliable", {},
          "--chains " + std::to_string(usual),
          static_cast<double>(usual) / static_cast<double>(asked_.chains) * summary_.evaluations);
    if (mean.monte_carlo_std_error > kShareOfData * mean.data_std_error)
      add("the chains' error of the mean (" + significant(mean.monte_carlo_std_error, 2) +
              ") counts beside that of the images (" + significant(mean.data_std_error, 2) + ")",
          {}, "more chains, or more images at as many: " + chains_of(kLonger * asked_.chains),
          kLonger * summary_.evaluations);
  }

  void acceptance() {
    if (!summary_.accept_prob) return;
    const double accept = *summary_.accept_prob;
    const bool fixed_step = asked_.step_size != "adapt";
    if (accept >= kLowAcceptance && (accept <= kHighAcceptance || !fixed_step)) return;
    add("the mean acceptance is " + fixed(accept, 2) + ": steps are too " +
            (accept < kLowAcceptance ? "long" : "short"),
        {},
        fixed_step    ? "let a pilot tune them: --step-size adapt"
        : has_leaps() ? "--leapfrog 2, or --kernel hmc"
                      : "--kernel hmc",
        summary_.evaluations);
  }

  void proposals() {
    if (summary_.num_nonfinite == 0) return;
    add(with_commas(summary_.num_nonfinite) +
            " proposals had no finite density and were rejected; estimates stay valid",
        {}, "shorter steps, or --dtype float64, if they are many", summary_.evaluations);
  }

  const MethodTable& table_;
  const LikelihoodSummary& summary_;
  const Asked& asked_;
  std::vector<int64_t> indices_;
  bool anneals_;
  std::vector<Finding> findings_;
};

std::string named(const std::vector<int64_t>& images) {
  std::string text =
      images.size() == 1 ? "Image " : with_commas(int64_t(images.size())) + " images: ";
  for (size_t i = 0; i < std::min(images.size(), kMostNamed); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(images[i]);
  return text + (images.size() > kMostNamed ? ", ... (per_image.csv names all)." : ".");
}

json to_json(const std::vector<Finding>& findings) {
  json list = json::array();
  for (const Finding& f : findings)
    list.push_back({{"what", f.what},
                    {"images", f.images},
                    {"remedy", f.remedy},
                    {"evaluations_per_image", f.evaluations > 0 ? json(f.evaluations) : json()}});
  return list;
}

}  // namespace

std::string sentence_of(const Finding& f) {
  std::string text = f.what + ".";
  if (!f.images.empty()) text += " " + named(f.images);
  text += " Remedy: " + f.remedy;
  if (f.evaluations > 0)
    text += " (" + with_commas(std::llround(f.evaluations)) + " evaluations an image)";
  return text + ".";
}

std::vector<Finding> diagnose(const EvalResults& results, const json& run) {
  std::vector<Finding> all;
  const std::vector<MethodTable> methods = tables(results);
  const std::vector<LikelihoodSummary> summaries = summarise(results);
  const Asked settings(json_field<json>(run, "settings", "run.json"));
  for (size_t m = 0; m < methods.size(); ++m)
    for (Finding& finding : Examination(results, methods[m], summaries[m], settings).findings())
      all.push_back(std::move(finding));
  const json images = json_field<json>(run, "images", "run.json");
  if (const auto warning = images.find("binarisation_warning");
      warning != images.end() && warning->is_string() && !warning->get<std::string>().empty())
    all.push_back({"the images are not as in training: " + warning->get<std::string>(),
                   {},
                   "evaluate them as the model was trained, without --binarisation",
                   0.0});
  return all;
}

int diagnose_evaluation(const CommandLine& cli) {
  refuse_flags_of_runs(cli, "diagnose", {});
  if (cli.operands().size() != 2)
    throw argument_error("diagnose takes one result folder: eval-loglik diagnose DIR");
  const WholeEvaluation whole = read_whole_evaluation(cli.operands()[1]);
  const std::vector<Finding> findings = diagnose(whole.results, whole.run);
  if (print_for_programs({{"program", "eval-loglik diagnose"}, {"results", to_json(findings)}},
                         parse_format(cli.text("format"))))
    return findings.empty() ? 0 : 1;
  const int width = stdout_width();
  for (const Finding& finding : findings) std::cout << wrapped(sentence_of(finding), width) << "\n";
  if (findings.empty()) std::cout << "Nothing is wrong that chains can tell.\n";
  std::cout << std::flush;
  return findings.empty() ? 0 : 1;
}

}  // namespace crais
