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

}  // namespace crais::highdim
