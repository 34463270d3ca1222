/// @file
/// Methods that estimate log normalisers: a sampler with all its settings, for any problem.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
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

/// Results of P problems, [P] float64 each.
struct MethodResult {
  Estimate estimate;              // a lower bound on average
  std::optional<Estimate> upper;  // an upper bound on average, if the method has one
  at::Tensor accept_prob;  // mean over moves and chains; undefined for a method without moves
  int64_t num_nonfinite = 0;
  Cost cost;                                        // summed over problems and particles
  std::optional<WeightedParticles> particles = {};  // if they were asked for
  // Log-weights [P,K] float64 of a method with independent chains: they determine `estimate` and
  // `upper`.
  at::Tensor log_w = {}, reverse_log_w = {};  // the latter of reverse chains, if there are any
  at::Tensor distance = {};  // see CoupledDraws; undefined if no chains were coupled
  // [P,2,K] float64: minus the works of the acceptance ratio, forward and reversed. A chain of a
  // problem with parts is one of each part, of which one runs back; its weight is their sum.
  at::Tensor works = {};
};

/// One estimate from all chains of `blocks`, the results of one method with independent chains.
MethodResult joined(const std::vector<MethodResult>& blocks);

/// The results of the user's problems from the results of their parts, whose normalisers add up.
/// Chain k of a problem is chain k of all its parts. If chains depend on each other, the variances
/// of the parts add up.
MethodResult merged(MethodResult parts, const Partition& partition);

/// The particles of all parts of a problem side by side, [P,JK,...]. Missing parts get weight zero.
/// Each weight is multiplied by J, so that the mean of all weights is the sum of the parts' means.
WeightedParticles side_by_side(const WeightedParticles& parts, const Partition& partition);

/// A method that estimates log normalisers. Immutable: threads may share it.
///
///     auto iwae = crais::MethodRegistry::instance().make("method", "iwae:5000", parts);
///     crais::MethodResult result = iwae->estimate(problem, plan, rng);
class Method {
 public:
  virtual ~Method() = default;

  /// Estimates with `plan.num_particles` chains, unless the method has a number of its own.
  virtual MethodResult estimate(const Problem& problem, const Plan& plan,
                                at::Generator& rng) const = 0;
  /// The number of times that `estimate` anneals under the plan. Methods with 0 ignore its
  /// temperatures.
  virtual int64_t num_anneals() const { return 0; }
  /// The cost of an estimate of `target`, in anneals.
  virtual double anneals_of(const Target& /*target*/) const {
    return static_cast<double>(num_anneals());
  }
  /// True if `plan.num_particles` chains may be run in blocks and the results `joined`.
  virtual bool has_independent_chains() const { return false; }
  /// True if the method can return weighted particles of the target.
  virtual bool has_particles() const { return false; }
  /// True if the method has an upper bound too.
  virtual bool has_upper() const { return false; }
  /// True if the method estimates only if it was made with `pilots`.
  virtual bool learns() const { return false; }
};

/// Problems on which a method may learn, when it is made, what all problems share. The method adds
/// the cost of learning. Streams of `seed` alone determine the result.
struct Pilots {
  Problem problems;
  uint64_t seed = 0;
  Cost cost;
};

/// The parts of a method that anneals.
struct AnnealingParts {
  std::shared_ptr<const Path> path;
  std::shared_ptr<const Transition> transition;
  std::shared_ptr<const Resampling> resampling;  // null: none
  bool keep_particles = false;                   // in results, where they take memory
  Pilots* pilots = nullptr;                      // null: the method does not learn
};

using MethodRegistry = Registry<Method, const AnnealingParts&>;

}  // namespace crais
