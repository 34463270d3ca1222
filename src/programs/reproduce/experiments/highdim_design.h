// Targets in high dimensions, and the schedules that are compared on them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "programs/reproduce/density_experiment.h"

namespace crais::highdim {

constexpr int64_t kSteps = 64;  // transitions that are compared

/// What fixes the scale of the rules' parameters: KL(N(0, I) || target) and the thermodynamic
/// length of the geometric path, in nats.
struct HighTarget {
  std::string name;
  double kl, length;
  std::string options;
};

/// The paper's four targets. `mean_zero` adds the normal of the text, whose mean is 0.
std::vector<HighTarget> high_targets(int64_t dim, bool mean_zero = false);

/// A rule with the settings that it is chosen from.
struct Family {
  std::string name;
  std::vector<Variant> variants;  // named by what they set
  int64_t trials = 0;             // pilots that looked for a setting of 64 transitions
};

/// All families, with their settings, each with `flags`: heuristics of 64 transitions, rules whose
/// setting was looked for until they had as many (see match_transitions), and, with a star, plans
/// that were stretched to 64. `every_order` adds constant rate on power paths.
std::vector<Family> families(const DensityExperiment& experiment, const HighTarget& target,
                             const std::string& flags, bool every_order);

/// What is chosen among variants: by the first `choosing` seeds, the highest mean
/// log Z (every estimate is a lower bound on average); by the others the least true error (oracle).
struct Choice {
  static constexpr size_t kNone = static_cast<size_t>(-1);
  size_t chosen = kNone, oracle = kNone;
  double search = 0;  // evaluations of all that were tried, all chains
};
Choice choose(const std::vector<VariantResult>& results, int64_t choosing, double truth);

}  // namespace crais::highdim
