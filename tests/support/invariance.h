// Does a kernel leave gamma_beta alone? Exact draws go in; moments must not change.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "core/problem.h"
#include "core/transition.h"
#include "support/statistics.h"

namespace crais::testing {

struct InvarianceCheck {
  double beta = 0.5;
  double step_size = 0.9;
  int64_t steps = 15;
};

/// First, second, third and cross moments of each problem's particles, and of their log-density.
inline at::Tensor moments(const Particles& particles, const at::Tensor& annealed) {
  std::vector<at::Tensor> columns = {annealed.unsqueeze(-1)};
  const auto add = [&](const at::Tensor& x) {
    columns.insert(columns.end(), {x, x.square(), x.pow(3), x.square().square()});
  };
  add(particles.e);
  if (particles.e.size(-1) > 1) {
    const at::Tensor x = particles.e.select(-1, 0), y = particles.e.select(-1, 1);
    columns.push_back(at::stack({x * y, x.square() * y, x * y.square()}, -1));
  }
  if (particles.momentum.defined()) {
    add(particles.momentum);
    columns.push_back(particles.momentum * particles.e);
    columns.push_back(particles.momentum * particles.e.square());
  }
  return at::cat(columns, -1).mean(1);
}

/// The largest |z| over moments of (after - before), across problems. `e` [P,K,D] are exact draws
/// of gamma_beta. Momenta start, as they should, standard normal.
inline double worst_z(const Transition& kernel, const Problem& problem, const Path& path,
                      const at::Tensor& e, const InvarianceCheck& check, at::Generator& rng,
                      bool keeps_momentum = false) {
  const at::Tensor beta = at::full({e.size(0)}, check.beta, at::kDouble);
  const at::Tensor step_size = at::full({e.size(0)}, check.step_size, at::kDouble);
  Particles particles = problem.evaluate(e);
  if (keeps_momentum) particles.momentum = at::empty_like(e).normal_(0, 1, rng);
  const auto measure = [&] {
    return moments(particles,
                   path.at(beta.unsqueeze(1), particles.log_q0, particles.log_gamma).log_density);
  };
  const at::Tensor before = measure();
  for (int64_t i = 0; i < check.steps; ++i)
    particles = kernel.step(problem, path, particles, beta, step_size, rng).particles;
  const at::Tensor z = z_scores(measure() - before, at::zeros({}, at::kDouble));
  return at::nan_to_num(z.abs(), INFINITY).max().item<double>();
}

}  // namespace crais::testing
