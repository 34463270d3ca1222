// Targets of known normaliser, asymmetric on purpose: a sign error hides behind a symmetric one.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/target.h"
#include "targets/function_target.h"

namespace crais::testing {

inline at::Tensor row(const std::vector<double>& values) {
  return at::tensor(values, at::kDouble).unsqueeze(0);
}

/// c N(z; mean, diag(sd^2)): Z = c.
class DiagonalGaussian : public Target {
 public:
  /// mean, sd [P,D]; log_c [P].
  DiagonalGaussian(at::Tensor mean, at::Tensor sd, at::Tensor log_c)
      : mean_(std::move(mean)), sd_(std::move(sd)), log_c_(std::move(log_c)) {
    traits_.can_select = true;
    traits_.log_normalizer = log_c_;
  }

  /// P copies of one problem.
  DiagonalGaussian(int64_t num_problems, const std::vector<double>& mean,
                   const std::vector<double>& sd, double log_c)
      : DiagonalGaussian(row(mean).repeat({num_problems, 1}), row(sd).repeat({num_problems, 1}),
                         at::full({num_problems}, log_c, at::kDouble)) {}

  int64_t num_problems() const override { return mean_.size(0); }
  int64_t dim() const override { return mean_.size(1); }
  at::Tensor log_density(const at::Tensor& z) const override {
    const at::Tensor x = (z - mean_.unsqueeze(1)) / sd_.unsqueeze(1);
    const double root = 0.5 * std::log(2 * M_PI);
    return (-0.5 * x.square() - sd_.log().unsqueeze(1) - root).sum(-1) + log_c_.unsqueeze(1);
  }
  std::optional<at::Tensor> exact_sample(int64_t k, at::Generator& rng) const override {
    const at::Tensor x = at::empty({num_problems(), k, dim()}, mean_.options()).normal_(0, 1, rng);
    return mean_.unsqueeze(1) + sd_.unsqueeze(1) * x;
  }
  std::shared_ptr<const Target> select(const at::Tensor& index) const override {
    const auto rows = [&](const at::Tensor& x) { return x.index_select(0, index); };
    return std::make_shared<DiagonalGaussian>(rows(mean_), rows(sd_), rows(log_c_));
  }

 private:
  at::Tensor mean_, sd_, log_c_;
};

/// log gamma = sum_d a_d z_d - exp(z_d): the logarithms of Gamma(a_d) variables, skewed to the
/// left. Z = prod_d Gamma(a_d).
class LogGamma : public Target {
 public:
  explicit LogGamma(at::Tensor shape) : shape_(std::move(shape)) {  // [P,D]
    traits_.can_select = true;
    traits_.log_normalizer = shape_.lgamma().sum(-1);
  }
  LogGamma(int64_t num_problems, const std::vector<double>& shape)
      : LogGamma(row(shape).repeat({num_problems, 1})) {}

  int64_t num_problems() const override { return shape_.size(0); }
  int64_t dim() const override { return shape_.size(1); }
  at::Tensor log_density(const at::Tensor& z) const override {
    return (shape_.unsqueeze(1) * z - z.exp()).sum(-1);
  }
  std::optional<at::Tensor> exact_sample(int64_t k, at::Generator& rng) const override {
    return at::_standard_gamma(shape_.unsqueeze(1).repeat({1, k, 1}), rng).log();
  }
  std::shared_ptr<const Target> select(const at::Tensor& index) const override {
    return std::make_shared<LogGamma>(shape_.index_select(0, index));
  }

 private:
  at::Tensor shape_;
};

/// Replicates of a density that is given as a function.
inline FunctionTarget replicated(int64_t dim,
                                 const std::function<at::Tensor(const at::Tensor&)>& density,
                                 int64_t problems = 1) {
  return FunctionTarget({problems, dim},
                        [density](const at::Tensor& z, const at::Tensor&) { return density(z); });
}

/// Another target, counting what is asked of it.
class Counting : public Target {
 public:
  explicit Counting(const Target& inner) : inner_(inner) {}

  int64_t num_problems() const override { return inner_.num_problems(); }
  int64_t dim() const override { return inner_.dim(); }
  at::Tensor log_density(const at::Tensor& z) const override {
    densities += z.size(0) * z.size(1);
    most_rows = std::max(most_rows, z.size(0) * z.size(1));
    return inner_.log_density(z);
  }
  Evaluation evaluate(const at::Tensor& z) const override {
    gradients += z.size(0) * z.size(1);
    most_rows = std::max(most_rows, z.size(0) * z.size(1));
    return inner_.evaluate(z);
  }

  mutable int64_t densities = 0, gradients = 0, most_rows = 0;

 private:
  const Target& inner_;
};

}  // namespace crais::testing
