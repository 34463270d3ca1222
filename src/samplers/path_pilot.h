// A pilot that finds the constants of a path of steepest descent.
#pragma once

#include <memory>

#include "paths/descent.h"
#include "samplers/plan.h"

namespace crais {

/// Moves particles down the path, one transition a step. Each step makes log-weights of standard
/// deviation `length` (the mean over problems if plans are shared), and is frozen from the
/// particles before it. The pilot ends when the particles' overlap with the target is above 0.9. As
/// in other pilots, the particles are unweighted and count as draws of the current density.
///
/// Throws ScheduleError if steps have length 0, or if there are more steps than the path allows.
/// `cost` grows by 1 + L T evaluations for each pilot particle, T the number of steps so far.
std::shared_ptr<const DescentPath> learn_path(const Problem& problem, const Path& path,
                                              const Transition& transition,
                                              const PilotOptions& options, at::Generator& rng,
                                              Cost& cost);

}  // namespace crais
