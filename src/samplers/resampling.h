/// @file
/// Resampling replaces particles of small weight by copies of others, and so turns AIS into SMC.
#pragma once

#include <ATen/ATen.h>

#include "core/particles.h"
#include "core/registry.h"

namespace crais {

/// A rule that chooses ancestors. Unbiased: particle k is copied K W_k times on average.
///
///     crais::Result r = crais::estimate_log_normalizer(target, {.resampling = "systematic:0.5"});
class Resampling {
 public:
  /// A problem is due once its ESS fraction is below `threshold`. With `ratchet`, it is due once
  /// the ESS fraction is below that share of its value at the last resampling (1 before the first),
  /// as in the CR-AIS paper.
  explicit Resampling(double threshold, bool ratchet = false)
      : threshold_(threshold), ratchet_(ratchet) {}
  virtual ~Resampling() = default;

  /// The problems [P] bool that are due. `last_ess` [P] is their ESS at the last resampling.
  at::Tensor due(const at::Tensor& log_w, const at::Tensor& last_ess) const;

  /// Draws ancestors: log_w [P,K] -> indices [P,K] int64 of each problem's particles.
  virtual at::Tensor ancestors(const at::Tensor& log_w, at::Generator& rng) const = 0;
  /// True if each ancestor is drawn independently, so that two particles may share one by chance.
  virtual bool draws_independently() const { return false; }

 private:
  double threshold_;
  bool ratchet_;
};

using ResamplingRegistry = Registry<Resampling>;

/// Systematic resampling of any number of particles: log_w [P,K] -> indices [P,count] int64.
at::Tensor systematic_ancestors(const at::Tensor& log_w, int64_t count, at::Generator& rng);

/// The descent of particles. Common ancestors make weights dependent.
struct Genealogy {
  at::Tensor roots;                // [P,K] int64: the starting particle of each particle
  at::Tensor num_resamplings;      // [P] float64
  at::Tensor last_ess;             // [P] float64: before the last resampling, 1 if there was none
  bool independent_draws = false;  // see Resampling::draws_independently
};

/// The particles at index [P,K], with their caches and momenta.
Particles gather(const Particles& particles, const at::Tensor& index);

}  // namespace crais
