// f(u) = (u log u - (1 + u) log((1 + u) / 2)) / 2: half the sum of the KLs to the mean of pi and q.
#include <cmath>

#include "core/divergence.h"

namespace crais {
namespace {

at::Tensor softplus_of(const at::Tensor& x) { return at::logaddexp(x, at::zeros_like(x)); }

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

const Enrol<DivergenceRegistry> kEnrolJensenShannon("jensen-shannon", "symmetric, at most log 2",
                                                    "jensen-shannon", factory_of<JensenShannon>);

}  // namespace
}  // namespace crais
