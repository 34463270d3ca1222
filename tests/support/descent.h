// Paths of steepest descent with constants by hand or by quadrature.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/log_math.h"
#include "paths/descent.h"

namespace crais::testing {

inline std::shared_ptr<const DescentPath> descent_path(const std::string& name) {
  return std::dynamic_pointer_cast<const DescentPath>(
      std::shared_ptr<const Path>(PathRegistry::instance().make("path", name)));
}

/// Equal steps of as many columns as `scale` [C] has, from a mean and a ratio like those of
/// particles.
inline std::shared_ptr<DescentPath> equal_steps(const std::string& name, const at::Tensor& scale,
                                                int64_t steps) {
  const auto path = descent_path(name)->start(at::stack({-30 * scale, 30 * scale}));
  const at::Tensor ones = at::ones_like(scale);
  const at::Tensor mean = path->divergence().g(at::full({}, -0.5, at::kDouble)) * ones;
  for (int64_t i = 0; i < steps; ++i) path->descend(at::stack({-0.3 * ones, mean, 0.4 * scale}));
  return path;
}

/// The path along such steps in one column.
inline std::shared_ptr<const DescentPath> any_descent(const std::string& name, int64_t steps) {
  const auto path = equal_steps(name, at::ones({1}, at::kDouble), steps);
  path->finish();
  return path;
}

/// h of a descent that goes on, at kappa [P,K].
inline at::Tensor tilt(const DescentPath& descent, const at::Tensor& kappa) {
  return descent.log_density(at::full({kappa.size(0), 1}, 0.5, at::kDouble), at::zeros_like(kappa),
                             kappa);
}

/// A line of grid points with their masses under the base N(0, 1), and kappa = log gamma - log q0.
class Line {
 public:
  Line(double mean, double sd, double log_mass)
      : z_(at::linspace(-12, 12, 6001, at::kDouble).unsqueeze(0)),
        log_q0_(normal(0, 1)),
        log_gamma_(normal(mean, sd) + log_mass) {}

  const at::Tensor& log_q0() const { return log_q0_; }
  const at::Tensor& log_gamma() const { return log_gamma_; }
  at::Tensor kappa() const { return log_gamma_ - log_q0_; }
  /// D_f(pi || q), by the definition, of q with log q = log q0 + h up to a constant.
  double divergence(const Divergence& f, const at::Tensor& h) const {
    const at::Tensor q = log_normalise(log_q0_ + h), pi = log_normalise(log_gamma_);
    return (q.exp() * f.f(pi - q)).sum().item<double>();
  }

  /// Descent by exact expectations; each step takes delta (V) -> dtheta. `seen` gets D before each.
  std::shared_ptr<const DescentPath> descend(const std::string& name,
                                             const std::function<double(double)>& theta_of,
                                             int64_t steps,
                                             std::vector<double>* seen = nullptr) const {
    const auto path =
        descent_path(name)->start(at::tensor({-80.0, 60.0}, at::kDouble).unsqueeze(1));
    const Divergence& f = path->divergence();
    for (int64_t i = 0; i < steps; ++i) {
      const at::Tensor h = tilt(*path, kappa()), v = kappa() - h;
      if (seen) seen->push_back(divergence(f, h));
      const at::Tensor q = log_normalise(log_q0_ + h);
      const at::Tensor log_r = at::logsumexp(q + v, -1);
      const at::Tensor g = f.g(v - log_r);
      const at::Tensor m = (q.exp() * g).sum(-1);
      const double variance = (q.exp() * (g - m).square()).sum().item<double>();
      path->descend(at::stack({log_r, m, at::full({1}, theta_of(variance), at::kDouble)}));
    }
    path->finish();
    return path;
  }

 private:
  at::Tensor normal(double mean, double sd) const {
    return -0.5 * ((z_ - mean) / sd).square() - std::log(sd) - 0.5 * std::log(2 * M_PI);
  }

  at::Tensor z_, log_q0_, log_gamma_;
};

}  // namespace crais::testing
