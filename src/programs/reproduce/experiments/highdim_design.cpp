#include "programs/reproduce/experiments/highdim_design.h"

#include <cmath>
#include <limits>

#include "util/format.h"

namespace crais::highdim {
namespace {

/// Constant rate of the power path of every order, stretched. Away from order 0 no chain gets to
/// the target in high dimensions, V keeps its largest value and about log(1e12) V / delta
/// transitions are made; near the target it takes D / delta.
std::vector<Variant> orders(const std::string& own) {
  std::vector<Variant> variants;
  const auto add = [&](double alpha, std::vector<double> deltas) {
    for (const double delta : deltas) {
      const std::string order = shortest(alpha), rate = significant(delta, 3);
      variants.push_back(
          {"alpha " + order + ", " + rate,
           "--path power:" + order + " --max-steps 1024 --schedule constant-rate:" + rate + own});
    }
  };
  for (const double alpha : {0.25, 0.5, 0.75}) {
    const double largest = 1 / (alpha * (1 - alpha));  // what D_f can be
    add(alpha, {largest / 2, largest / 16});
  }
  // Here V is bounded by the number of pilot chains only.
  add(1, {100, 1});
  add(2, {1e6, 1e3});
  add(-0.5, {1e3, 3});
  return variants;
}

}  // namespace

std::vector<HighTarget> high_targets(int64_t dim, bool mean_zero) {
  const auto d = static_cast<double>(dim);
  const double stretch = std::sqrt(d / 128);
  std::vector<HighTarget> targets = {{"normal", 97.197 * d, 43.61 * stretch, ""},
                                     {"mixture", 3 * 9.139 + 12.5 * (d - 3), 56.46 * stretch, ""},
                                     {"laplace", 0.0721 * d, 5.49 * stretch, ""},
                                     {"student-t", 0.0691 * d, 6.24 * stretch, ""}};
  // KL(N(0, 1) || N(0, 0.01)) and about the length of its geometric path, log(100) / sqrt(2).
  if (mean_zero) targets.push_back({"normal", 47.197 * d, 3.26 * std::sqrt(d), ",mean=0"});
  return targets;
}

std::vector<Family> families(const DensityExperiment& experiment, const HighTarget& target,
                             const std::string& flags, bool every_order) {
  const std::string own = " " + flags, stretched = own + " --interpolate " + std::to_string(kSteps);
  const auto heuristic = [&](const std::string& name) {
    return Family{name, {{"-", flags_of_plans(name, kSteps) + " " + without_pilot(own)}}};
  };
  const auto matched = [&](const std::string& name, const std::string& rule) {
    const MatchedPlans plans = experiment.match("--schedule " + rule + ":@" + own, kSteps);
    Family family{name, {}, plans.trials};
    if (plans.transitions > 0) family.variants.push_back({plans.setting, plans.flags});
    return family;
  };
  Family cess{"CESS*", {}}, rate{"constant rate*", {}}, length{"constant length*", {}};
  for (const std::string ratio : {"0.6", "0.7", "0.8", "0.9"})
    cess.variants.push_back({ratio, "--schedule cess:" + ratio + stretched});
  for (int k = 4; k <= 8; ++k) {
    const std::string delta = significant(target.kl / std::exp2(k), 3);
    rate.variants.push_back({delta, "--schedule constant-rate:" + delta + stretched});
    const std::string step = significant(target.length / std::exp2(k), 3);
    length.variants.push_back({step, "--schedule constant-length:" + step + stretched});
  }
  std::vector<Family> all = {heuristic("linear"),
                             heuristic("sigmoidal"),
                             heuristic("geometric"),
                             matched("ESS", "ess"),
                             matched("CESS", "cess"),
                             matched("constant rate", "constant-rate"),
                             matched("constant length", "constant-length"),
                             cess,
                             rate,
                             length};
  if (every_order) {
    Family any{"constant rate*, any alpha", orders(stretched)};
    any.variants.insert(any.variants.end(), rate.variants.begin(), rate.variants.end());
    all.push_back(any);
  }
  return all;
}

}  // namespace crais::highdim
