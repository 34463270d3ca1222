/// @file
/// Replacing particles of little weight by copies of others: what makes AIS an SMC sampler.
#pragma once

#include <ATen/ATen.h>

#include "core/particles.h"
#include "core/registry.h"

namespace crais {

/// Chooses ancestors. Unbiased: particle k is copied K W_k times on average.
///
///     crais::Result r = crais::estimate_log_normalizer(target, {.resampling = "systematic:0.5"});
class Resampling {
 public:
  /// Due once the ESS fraction is below `threshold`; with `ratchet`, below that share of what it
  /// was when the problem was last resampled (1 before), as in the CR-AIS paper.
  explicit Resampling(double threshold, bool ratchet = false)
      : threshold_(threshold), ratchet_(ratchet) {}
  virtual ~Resampling() = default;

  /// Problems [P] bool that are due; `last_ess` [P] is their ESS at the last resampling.
  at::Tensor due(const at::Tensor& log_w, const at::Tensor& last_ess) const;

  /// log_w [P,K] -> indices [P,K] int64 into each problem's particles.
  virtual at::Tensor ancestors(const at::Tensor& log_w, at::Generator& rng) const = 0;
  /// True if each ancestor is drawn for itself, so that two particles have the same one by chance.
  virtual bool draws_independently() const { return false; }

 private:
  double threshold_;
  bool ratchet_;
};

using ResamplingRegistry = Registry<Resampling>;

/// Systematic resampling of any number of particles: log_w [P,K] -> indices [P,count] int64.
at::Tensor systematic_ancestors(const at::Tensor& log_w, int64_t count, at::Generator& rng);

/// Who descends from whom, which is what makes weights depend on each other.
struct Genealogy {
  at::Tensor roots;                // [P,K] int64: the starting particle of each
  at::Tensor num_resamplings;      // [P] float64
  at::Tensor last_ess;             // [P] float64: just before the last resampling, 1 without one
  bool independent_draws = false;  // see Resampling::draws_independently
};

/// Particles by index [P,K], caches and momenta with them.
Particles gather(const Particles& particles, const at::Tensor& index);

}  // namespace crais
