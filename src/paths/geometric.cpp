// gamma_beta = q0^(1-beta) gamma^beta                                        [Neal 2001]
#include "core/path.h"
#include "divergences/alpha.h"
#include "paths/power_mean.h"

namespace crais {
namespace {

class Geometric : public Path {
 public:
  Geometric() : Path(make_alpha_divergence(0)) {}

  PathPoint at(const at::Tensor& beta, const at::Tensor& log_q0,
               const at::Tensor& log_gamma) const override {
    // xlogy-like products: an end that has no weight must not turn -inf into NaN.
    const at::Tensor back = 1 - beta;
    const at::Tensor from = at::where(beta == 1, 0.0, back * log_q0);
    const at::Tensor to = at::where(beta == 0, 0.0, beta * log_gamma);
    return {from + to, back.expand_as(log_q0), beta.expand_as(log_gamma)};
  }
};

const Enrol<PathRegistry> kEnrolGeometric(
    "geometric", {"geometric", "q0^(1-beta) gamma^beta; the power mean of order 0", "geometric",
                  [](Spec&) { return make_geometric_path(); }});

}  // namespace

std::unique_ptr<Path> make_geometric_path() { return std::make_unique<Geometric>(); }

}  // namespace crais
