// A way to estimate log normalisers: a sampler with everything it needs, ready for any problem.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "core/path.h"
#include "core/problem.h"
#include "core/registry.h"
#include "core/schedule.h"
#include "core/transition.h"
#include "estimates/estimate.h"
#include "samplers/plan.h"

namespace crais {

/// Per problem, [P] float64 each.
struct MethodResult {
  Estimate estimate;              // a lower bound on average
  std::optional<Estimate> upper;  // an upper bound on average, where the method has one
  at::Tensor accept_prob;  // mean over moves and chains; undefined for a method without moves
  int64_t num_nonfinite = 0;
};

/// Immutable while it estimates: threads share it.
class Method {
 public:
  virtual ~Method() = default;

  virtual MethodResult estimate(const Problem& problem, const Plan& plan,
                                at::Generator& rng) const = 0;
  /// How often `estimate` anneals under the plan; methods with 0 ignore theirs.
  virtual int64_t num_anneals() const { return 0; }
  /// True if the target must have exact draws.
  virtual bool needs_exact_draws() const { return false; }
};

/// What annealed methods are made of.
struct AnnealingParts {
  const Path& path;
  const Transition& transition;
  const Resampling* resampling;  // may be absent
};

using MethodRegistry = Registry<Method, const AnnealingParts&>;

}  // namespace crais
