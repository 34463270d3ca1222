// How far the particles of a run are from the target, temperature by temperature.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "core/particles.h"
#include "core/path.h"

namespace crais {

/// Estimates D_f(pi || q_beta) = E_q[f(u)], u = pi / q_beta, of the path's own divergence. Of the
/// alpha divergence,
///
///   f(u) = (u^alpha - alpha u) / (alpha (alpha - 1)) + 1 / alpha
///
/// (-log u at alpha = 0, u log u at 1), D = (E_q[u^alpha] - 1) / (alpha (alpha - 1)), in
/// logarithms: KL(q_beta || pi) on the geometric path, KL(pi || q_beta) on that of order 1.
/// Expectations are under the importance weights. The ratio of masses is that of the run's own
/// estimates, of the end and of the temperature: particles that do not overlap with the target
/// cannot tell it.
///
/// Cost: O(PK) a temperature, no target evaluations; in memory too, but for alpha divergences.
class DivergenceRecord {
 public:
  /// `path` must outlive the record.
  explicit DivergenceRecord(const Path& path) : path_(path) {}

  /// The particles at `beta` [P] and their log-weights [P,K] there.
  void add(const at::Tensor& beta, const Particles& particles, const at::Tensor& log_w);

  /// One value [P] for each call of add, [T+1,P] float64; the last call must be at beta = 1.
  at::Tensor finish() const;

 private:
  const Path& path_;
  std::vector<at::Tensor> log_mass_;         // of gamma_beta, [P]
  std::vector<at::Tensor> moment_;           // what the particles say apart from the masses, [P]
  std::vector<at::Tensor> weights_, kappa_;  // [P,K], of divergences without such a moment
};

}  // namespace crais
