/// @file
/// A way to estimate log normalisers: a sampler with everything it needs, ready for any problem.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/path.h"
#include "core/problem.h"
#include "core/registry.h"
#include "core/schedule.h"
#include "core/transition.h"
#include "estimates/estimate.h"
#include "estimates/expectation.h"
#include "samplers/plan.h"

namespace crais {

/// Per problem, [P] float64 each.
struct MethodResult {
  Estimate estimate;              // a lower bound on average
  std::optional<Estimate> upper;  // an upper bound on average, where the method has one
  at::Tensor accept_prob;  // mean over moves and chains; undefined for a method without moves
  int64_t num_nonfinite = 0;
  Cost cost;                                        // summed over problems and particles
  std::optional<WeightedParticles> particles = {};  // where they were asked for
  std::map<std::string, at::Tensor> columns = {};   // of the method's own, [N]: chunks keep them
  // Of methods with independent chains [P,K] float64: all that `estimate` and `upper` are made of.
  at::Tensor log_w = {}, reverse_log_w = {};  // the latter of chains that run back, if any
};

/// One estimate of all the chains of `blocks`, results of one method with independent chains.
MethodResult joined(const std::vector<MethodResult>& blocks);

/// The results of the user's problems from those of their parts, whose normalisers add up. Chain k
/// of a problem is chain k of all of its parts; where chains depend on each other, the parts'
/// variances add up.
MethodResult merged(MethodResult parts, const Partition& partition);

/// Immutable: threads share it.
///
///     auto iwae = crais::MethodRegistry::instance().make("method", "iwae:5000", parts);
///     crais::MethodResult found = iwae->estimate(problem, plan, rng);
class Method {
 public:
  virtual ~Method() = default;

  /// `plan.num_particles` chains, for methods that are not told their own number.
  virtual MethodResult estimate(const Problem& problem, const Plan& plan,
                                at::Generator& rng) const = 0;
  /// How often `estimate` anneals under the plan; methods with 0 ignore its temperatures.
  virtual int64_t num_anneals() const { return 0; }
  /// True if `plan.num_particles` chains may be had some at a time, as `joined` results.
  virtual bool has_independent_chains() const { return false; }
  /// True if it has weighted particles of the target to show for it.
  virtual bool has_particles() const { return false; }
  /// True if the target must have exact draws.
  virtual bool needs_exact_draws() const { return false; }
  /// True if it estimates only where it was made with `pilots`.
  virtual bool learns() const { return false; }
};

/// Problems on which a method may learn, as it is made, what all problems share. It adds what that
/// cost; streams of `seed` alone decide it.
struct Pilots {
  Problem problems;
  uint64_t seed = 0;
  Cost cost;
};

/// What methods are made of.
struct AnnealingParts {
  std::shared_ptr<const Path> path;
  std::shared_ptr<const Transition> transition;
  std::shared_ptr<const Resampling> resampling;  // null: none
  bool keep_particles = false;                   // in results: they take memory
  Pilots* pilots = nullptr;                      // null: nothing is learned
};

using MethodRegistry = Registry<Method, const AnnealingParts&>;
/// Makes what a name stands for, in place of the registry.
using MethodFactory =
    std::function<std::unique_ptr<Method>(const std::string& name, const AnnealingParts& parts)>;

}  // namespace crais
