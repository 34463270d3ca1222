// How a path of steepest descent finds its constants.
#pragma once

#include <memory>

#include "paths/descent.h"
#include "samplers/plan.h"

namespace crais {

struct LearnedPath {
  std::shared_ptr<const DescentPath> path;  // on the CPU
  Cost cost;
};

/// Takes particles down the path, one transition a step: each step is as long as makes log-weights
/// of standard deviation `length`, frozen from the particles before it, the mean over problems
/// where plans are shared. Ends where the particles' overlap with the target is above 0.9.
/// Particles are not weighted: like those of other pilots they are taken for draws of where they
/// are.
///
/// Throws ScheduleError if steps stand still, or are more than the path allows.
/// Cost: 1 + L T evaluations per pilot particle, T the steps it takes.
LearnedPath learn_path(const Problem& problem, const Path& path, const Transition& transition,
                       const PilotOptions& options, at::Generator& rng);

}  // namespace crais
