#include "programs/eval_loglik/curve.h"

#include <algorithm>
#include <set>

namespace crais {
namespace {

using nlohmann::json;

/// A curve is one method along one path from one base, with as many chains of every image.
const std::set<std::string>& decided_flags() {
  static const std::set<std::string> kFlags = {"method",    "base",         "budget",
                                               "path",      "resample",     "per-image",
                                               "max-evals", "target-error", "mean-error"};
  return kFlags;
}

/// Weights of chains from the prior are uneven, and temperatures go where log-weights change.
const std::vector<std::pair<std::string, std::string>>& other_defaults() {
  static const std::vector<std::pair<std::string, std::string>> kDefaults = {
      {"schedule", "constant-length:0.02"}, {"chains", "16"}};
  return kDefaults;
}

}  // namespace

bool is_curve(const std::vector<std::string>& arguments) {
  return !arguments.empty() && arguments.front() == "curve";
}

Synopsis curve_synopsis() {
  Synopsis s = eval_loglik_synopsis();
  s.summary =
      "The curve of rate and distortion of a decoder, from one anneal from the prior, with error "
      "bars. With --simulate, bounds both ways.";
  s.operands = "curve MODEL";
  s.min_operands = s.max_operands = 2;
  const auto is_decided = [](const auto& of) { return decided_flags().count(of) > 0; };
  for (OptionGroup& group : s.groups) {
    std::erase_if(group.options, [&](const Option& option) { return is_decided(option.name); });
    for (Option& option : group.options)
      for (const auto& [name, value] : other_defaults())
        if (option.name == name) option.fallback = {value};
  }
  s.groups.insert(
      s.groups.begin(),
      {"Curve",
       {option::text("distortion", "nll[:BETA]|mse[:SD]", "nll",
                     "negative log-likelihood up to that beta (1), or mean squared error down to "
                     "that of noise of standard deviation SD (half that of the data)")}});
  std::erase_if(s.presets, [](const Preset& preset) { return preset.name == "robust"; });
  for (Preset& preset : s.presets)
    std::erase_if(preset.defaults, [&](const auto& flag) { return is_decided(flag.first); });
  s.examples =
      "  eval-loglik curve vae.safetensors --out results/nll\n"
      "  eval-loglik curve gan.pt2 --data images.npy --distortion mse:0.1 --out results/mse\n"
      "  eval-loglik curve vae.safetensors --simulate 1000\n";
  return s;
}

EvalSettings read_curve(const CommandLine& cli) {
  const std::string& model = cli.operands()[1];
  json flags = cli.settings();
  flags["base"] = "prior";
  const Synopsis whole = eval_loglik_synopsis();
  std::vector<std::string> words = {model};
  for (const std::string& word : flags_of(whole, {model}, flags)) words.push_back(word);
  EvalSettings s = read_settings(CommandLine(whole, words));
  s.distortion = parse_distortion(cli.text("distortion"));
  s.images.is_for_means = s.distortion->is_mse;
  s.estimator.methods = {s.images.simulate ? "rate-distortion:reverse=1" : "rate-distortion"};
  s.resolved["method"] = s.estimator.methods;
  s.resolved["distortion"] = cli.text("distortion");
  return s;
}

}  // namespace crais
