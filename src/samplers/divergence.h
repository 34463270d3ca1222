// What the particles of a run say of its temperatures: divergences and the barrier.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "core/particles.h"
#include "core/path.h"

namespace crais {

/// Estimates D_f(pi || q_beta) = E_q[f(u)], u = pi / q_beta, for the divergence of the path. For
/// the alpha divergence,
///
///   f(u) = (u^alpha - alpha u) / (alpha (alpha - 1)) + 1 / alpha
///
/// (-log u at alpha = 0, u log u at 1), D = (E_q[u^alpha] - 1) / (alpha (alpha - 1)), in
/// logarithms: KL(q_beta || pi) on the geometric path, KL(pi || q_beta) on the path of order 1.
/// Expectations use the importance weights. The ratio of masses comes from the run's own estimates
/// at the end and at beta: particles without overlap with the target cannot estimate it.
///
/// Cost: O(PK) a temperature, no target evaluations. O(PK) memory a temperature, except for alpha
/// divergences.
class DivergenceRecord {
 public:
  /// `path` must outlive the record.
  explicit DivergenceRecord(const Path& path) : path_(path) {}

  /// Adds the particles at `beta` [P] and their log-weights [P,K].
  void add(const at::Tensor& beta, const Particles& particles, const at::Tensor& log_w);

  /// One value [P] for each call of add: [T+1,P] float64. The last call must have beta = 1.
  at::Tensor finish() const;

 private:
  const Path& path_;
  std::vector<at::Tensor> log_mass_;         // log mass of gamma_beta, [P]
  std::vector<at::Tensor> moment_;           // the part without the masses, [P]
  std::vector<at::Tensor> weights_, kappa_;  // [P,K], for divergences without such a moment
};

/// The integral over beta of the standard deviation of the work rate, by the increments of the
/// annealed density at particles that have moved. Cost: O(PK) a temperature.
class BarrierRecord {
 public:
  /// `path` must outlive the record.
  explicit BarrierRecord(const Path& path) : path_(path) {}

  /// Adds the particles at `beta` [P] and their log-weights [P,K].
  void add(const at::Tensor& beta, const Particles& particles, const at::Tensor& log_w);
  /// [P] float64, nats.
  at::Tensor finish() const { return sum_; }

 private:
  const Path& path_;
  at::Tensor beta_, sum_;
};

}  // namespace crais
