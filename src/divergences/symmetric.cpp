// Symmetric divergences: D_f(pi || q) = D_f(q || pi).
#include <cmath>

#include "core/divergence.h"

namespace crais {
namespace {

/// f(u) = (u - 1) log u: KL(q || pi) + KL(pi || q).
class Jeffreys : public Divergence {
 public:
  at::Tensor f(const at::Tensor& log_u) const override { return log_u.expm1() * log_u; }
  at::Tensor g(const at::Tensor& log_u) const override { return log_u.expm1() + log_u; }
  at::Tensor slope(const at::Tensor& log_u) const override { return log_u.exp() + 1; }
};

const Enrol<DivergenceRegistry> kEnrolJeffreys(
    "jeffreys", {"jeffreys", "the sum of both Kullback-Leibler divergences", "jeffreys",
                 [](Spec&) { return std::make_unique<Jeffreys>(); }});

at::Tensor softplus_of(const at::Tensor& x) { return at::logaddexp(x, at::zeros_like(x)); }

/// f(u) = (u log u - (1 + u) log((1 + u) / 2)) / 2: half the sum of the KLs to the mean of pi and
/// q.
class JensenShannon : public Divergence {
 public:
  at::Tensor f(const at::Tensor& log_u) const override {
    // log u - log((1 + u) / 2) = log 2 - log(1 + 1 / u), without cancellation for large u.
    return 0.5 * (log_u.exp() * (std::log(2.0) - softplus_of(-log_u)) - log_mean(log_u));
  }
  at::Tensor g(const at::Tensor& log_u) const override { return 0.5 * log_mean(log_u); }
  at::Tensor slope(const at::Tensor& log_u) const override { return 0.5 * log_u.sigmoid(); }

 private:
  /// log((1 + u) / 2)
  static at::Tensor log_mean(const at::Tensor& log_u) { return softplus_of(log_u) - std::log(2.0); }
};

const Enrol<DivergenceRegistry> kEnrolJensenShannon("jensen-shannon",
                                                    {"jensen-shannon", "symmetric, at most log 2",
                                                     "jensen-shannon", [](Spec&) {
                                                       return std::make_unique<JensenShannon>();
                                                     }});

/// f(u) = (u - 1)^2 / (u + 1)                                       [Vincze 1981; Le Cam 1986]
class LeCam : public Divergence {
 public:
  at::Tensor f(const at::Tensor& log_u) const override {
    return log_u.expm1() * (0.5 * log_u).tanh();
  }
  // With s = u / (1 + u): g = 4 s^2 - 1, dg/dlog u = 8 s^2 (1 - s).
  at::Tensor g(const at::Tensor& log_u) const override {
    return (0.5 * log_u).tanh() * (2 * log_u.sigmoid() + 1);
  }
  at::Tensor slope(const at::Tensor& log_u) const override {
    return 8 * log_u.sigmoid().square() * (-log_u).sigmoid();
  }
};

const Enrol<DivergenceRegistry> kEnrolLeCam("le-cam",
                                            {"le-cam", "Vincze and Le Cam's, symmetric, at most 2",
                                             "le-cam",
                                             [](Spec&) { return std::make_unique<LeCam>(); }});

}  // namespace
}  // namespace crais
