// Rosenbrock's banana as a density in the plane.                               [Rosenbrock 1960]
#include <cmath>
#include <memory>

#include "targets/replicated_function.h"

namespace crais {
namespace {

/// x ~ N(1, 1), y ~ N(x^2, 0.1^2), without the normalising factor: Z = 2 pi / 10.
class Rosenbrock : public ReplicatedFunction {
 public:
  explicit Rosenbrock(const TargetOptions& options)
      : ReplicatedFunction(options, 2, std::log(2 * M_PI / 10), [](const at::Tensor& z) {
          const at::Tensor x = z.select(-1, 0), y = z.select(-1, 1);
          return -0.5 * ((1 - x).square() + 100 * (y - x.square()).square());
        }) {}

 protected:
  std::optional<at::Tensor> draw(const at::Tensor& like, at::Generator& rng) const override {
    const at::Tensor e = at::empty_like(like).normal_(0, 1, rng), x = 1 + e.select(-1, 0);
    return at::stack({x, x.square() + 0.1 * e.select(-1, 1)}, -1);
  }
};

const Enrol<TargetRegistry> kEnrolRosenbrock(
    "rosenbrock",
    {"rosenbrock", "a banana in the plane, 0.1 thick", "rosenbrock",
     [](Spec&, const TargetOptions& options) { return std::make_unique<Rosenbrock>(options); }});

}  // namespace
}  // namespace crais
