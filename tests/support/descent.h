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

/// Columns of equal steps from a mean and a ratio that could be those of particles.
inline std::shared_ptr<const DescentPath> any_descent(const std::string& name, int64_t columns,
                                                      int64_t steps, double reach = 30) {
  const auto path = descent_path(name);
  const at::Tensor ones = at::ones({steps, columns}, at::kDouble);
  const at::Tensor mean = path->divergence().g(at::full({}, -0.5, at::kDouble)) * ones;
  const at::Tensor range = at::stack(
      {-reach * at::ones({columns}, at::kDouble), reach * at::ones({columns}, at::kDouble)});
  return path->with({range, -0.3 * ones, mean, 0.4 * ones});
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

  /// Descent by exact expectations; each step takes delta (V) -> dtheta. Returns D after each.
  std::vector<double> descend(const DescentPath& path,
                              const std::function<double(double)>& theta_of, int64_t steps,
                              DescentConstants& constants) const {
    const Divergence& f = path.divergence();
    const at::Tensor range = at::tensor({-80.0, 60.0}, at::kDouble).unsqueeze(1);
    Descent descent(path.shared_divergence(), range);
    std::vector<double> found = {divergence(f, at::zeros_like(log_q0_))};
    std::vector<at::Tensor> log_ratio, mean, step;
    for (int64_t i = 0; i < steps; ++i) {
      const at::Tensor h = descent.at(kappa()).h, v = kappa() - h;
      const at::Tensor q = log_normalise(log_q0_ + h);
      const at::Tensor log_r = at::logsumexp(q + v, -1);
      const at::Tensor g = f.g(v - log_r);
      const at::Tensor m = (q.exp() * g).sum(-1);
      const double variance = (q.exp() * (g - m).square()).sum().item<double>();
      log_ratio.push_back(log_r);
      mean.push_back(m);
      step.push_back(at::full({1}, theta_of(variance), at::kDouble));
      descent.advance(log_r, m, step.back());
      found.push_back(divergence(f, descent.at(kappa()).h));
    }
    constants = {range, at::stack(log_ratio), at::stack(mean), at::stack(step)};
    return found;
  }

 private:
  at::Tensor normal(double mean, double sd) const {
    return -0.5 * ((z_ - mean) / sd).square() - std::log(sd) - 0.5 * std::log(2 * M_PI);
  }

  at::Tensor z_, log_q0_, log_gamma_;
};

}  // namespace crais::testing
