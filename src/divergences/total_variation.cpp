// f(u) = (sqrt((u - 1)^2 + eps^2) - eps) / 2: total variation |u - 1| / 2 with a rounded corner. A
// sharp corner has no g: at eps = 0, g would be a step at u = 1.
#include "core/divergence.h"

namespace crais {
namespace {

class TotalVariation : public Divergence {
 public:
  explicit TotalVariation(double eps) : eps_(eps) {}

  at::Tensor f(const at::Tensor& log_u) const override {
    const at::Tensor x = log_u.expm1();
    return 0.5 * (at::hypot(x, at::full_like(x, eps_)) - eps_);
  }
  at::Tensor g(const at::Tensor& log_u) const override {
    const Scaled s(log_u, eps_);
    return 0.5 * ((s.above - eps_ * eps_ * s.scale) / s.root + eps_);
  }
  at::Tensor slope(const at::Tensor& log_u) const override {
    const Scaled s(log_u, eps_);
    const at::Tensor u = log_u.clamp_max(0).exp();  // u / max(u, 1)
    return 0.5 * eps_ * eps_ * u.square() * s.scale / s.root.pow(3);
  }

 private:
  /// Quantities divided by max(u, 1), so that no u overflows.
  struct Scaled {
    at::Tensor scale, above, root;  // 1, u - 1 and sqrt((u - 1)^2 + eps^2)
    Scaled(const at::Tensor& log_u, double eps)
        : scale((-log_u.clamp_min(0)).exp()),
          above(-(-log_u.abs()).expm1() * log_u.sign()),
          root(at::hypot(above, eps * scale)) {}
  };

  double eps_;
};

const Enrol<DivergenceRegistry> kEnrolTotalVariation(
    "total-variation",
    {"total-variation[:EPS]", "its corner at u = 1 rounded over EPS (0.1); at most 1",
     "total-variation:0.1", [](Spec& spec) {
       return std::make_unique<TotalVariation>(spec.number("eps", 1e-3, 1e3, 0.1));
     }});

}  // namespace
}  // namespace crais
