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
  Estimate estimate;
  at::Tensor accept_prob;  // mean over moves and chains; undefined for a method without moves
  int64_t num_nonfinite = 0;
};

/// Immutable while it estimates: threads share it.
class Method {
 public:
  virtual ~Method() = default;

  virtual MethodResult estimate(const Problem& problem, const Plan& plan,
                                at::Generator& rng) const = 0;
  virtual Bound bound() const { return Bound::kLower; }
  /// True if `estimate` anneals under a plan; others ignore theirs.
  virtual bool anneals() const { return false; }
};

/// What annealed methods are made of.
struct AnnealingParts {
  const Path& path;
  const Transition& transition;
  int64_t num_particles;
};

using MethodRegistry = Registry<Method, const AnnealingParts&>;

}  // namespace crais
