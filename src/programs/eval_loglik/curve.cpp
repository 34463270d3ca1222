#include <algorithm>

#include "programs/eval_loglik/settings.h"

namespace crais {
namespace {

/// Flags that a curve sets: it has one method, one path and one base, and equally many chains of
/// every image.
const std::vector<std::string> kDecided = {"method",    "base",         "budget",
                                           "path",      "resample",     "per-image",
                                           "max-evals", "target-error", "mean-error"};

bool is_decided(const std::string& flag) {
  return std::find(kDecided.begin(), kDecided.end(), flag) != kDecided.end();
}

}  // namespace

Synopsis curve_synopsis() {
  Synopsis s = eval_loglik_synopsis();
  s.summary =
      "The curve of rate and distortion of a decoder, from one anneal from the prior, with error "
      "bars. With --simulate, bounds both ways.";
  s.operands = "curve MODEL";
  s.min_operands = s.max_operands = 2;
  for (OptionGroup& group : s.groups) {
    std::erase_if(group.options, [](const Option& option) { return is_decided(option.name); });
    // Weights of chains from the prior are uneven, and temperatures depend on changes of
    // log-weights.
    for (Option& option : group.options) {
      if (option.name == "schedule") option.fallback = {"constant-length:0.02"};
      if (option.name == "chains") option.fallback = {"16"};
    }
  }
  s.groups.insert(
      s.groups.begin(),
      {"Curve",
       {option::text("distortion", "nll[:BETA]|mse[:SD]", {"nll"},
                     "negative log-likelihood up to that beta (1), or mean squared error down to "
                     "that of noise of standard deviation SD (half that of the data)")}});
  std::erase_if(s.presets, [](const Preset& preset) { return preset.name == "robust"; });
  for (Preset& preset : s.presets)
    std::erase_if(preset.defaults, [](const auto& flag) { return is_decided(flag.first); });
  s.examples =
      "  eval-loglik curve vae.safetensors --out results/nll\n"
      "  eval-loglik curve gan.pt2 --data images.npy --distortion mse:0.1 --out results/mse\n"
      "  eval-loglik curve vae.safetensors --simulate 1000\n";
  return s;
}

EvalSettings read_curve(const CommandLine& cli) {
  nlohmann::json flags = cli.settings();
  flags["base"] = "prior";
  EvalSettings s = read_settings(command_line_of(cli.operands()[1], flags));
  s.distortion = parse_distortion(cli.text("distortion"));
  s.images.is_for_means = s.distortion->is_mse;
  s.estimator.methods = {s.images.simulate ? "rate-distortion:reverse=1" : "rate-distortion"};
  s.resolved["method"] = s.estimator.methods;
  s.resolved["distortion"] = cli.text("distortion");
  return s;
}

}  // namespace crais
