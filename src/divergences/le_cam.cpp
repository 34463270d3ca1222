// f(u) = (u - 1)^2 / (u + 1)                                       [Vincze 1981; Le Cam 1986]
#include "core/divergence.h"

namespace crais {
namespace {

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
