// Independent standard Laplace coordinates: a kink at the mode.
#include <cmath>
#include <memory>

#include "targets/product.h"

namespace crais {
namespace {

/// log gamma = -sum |z_d| - D log 2; Z = 1. The gradient at a kink is 0.
class Laplace : public Product {
 public:
  Laplace(const TargetOptions& options, int64_t dim) : Product(options, dim, 0.0) {}

 protected:
  /// The difference of two exponential variables is a Laplace variable.
  std::optional<at::Tensor> draw(const at::Tensor& like, at::Generator& rng) const override {
    const at::Tensor first = at::empty_like(like).exponential_(1, rng);
    return first - at::empty_like(like).exponential_(1, rng);
  }
  at::Tensor log_factors(const at::Tensor& z) const override { return -z.abs() - std::log(2.0); }
  at::Tensor slopes(const at::Tensor& z) const override { return -z.sign(); }
};

const Enrol<TargetRegistry> kEnrolLaplace(
    "laplace", {"laplace[:DIM]", "independent Laplace(0, 1) in DIM (128) dimensions", "laplace:4",
                [](Spec& spec, const TargetOptions& options) {
                  return std::make_unique<Laplace>(options, read_dim(spec));
                }});

}  // namespace
}  // namespace crais
