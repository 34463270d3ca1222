// Replacing particles of little weight by copies of others: what makes AIS an SMC sampler.
#pragma once

#include <ATen/ATen.h>

#include "core/particles.h"
#include "core/registry.h"

namespace crais {

/// Chooses ancestors. Unbiased: particle k is copied K W_k times on average.
class Resampling {
 public:
  explicit Resampling(double threshold) : threshold_(threshold) {}
  virtual ~Resampling() = default;

  /// Problems [P] bool whose ESS fraction lies below the threshold.
  at::Tensor due(const at::Tensor& log_w) const;

  /// log_w [P,K] -> indices [P,K] int64 into each problem's particles.
  virtual at::Tensor ancestors(const at::Tensor& log_w, at::Generator& rng) const = 0;

 private:
  double threshold_;
};

using ResamplingRegistry = Registry<Resampling>;

/// Who descends from whom, which is what makes weights depend on each other.
struct Genealogy {
  at::Tensor roots;            // [P,K] int64: the starting particle of each
  at::Tensor num_resamplings;  // [P] float64
};

/// Particles by index [P,K], caches and momenta with them.
Particles gather(const Particles& particles, const at::Tensor& index);

}  // namespace crais
