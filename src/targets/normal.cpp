// A narrow normal with its mean away from the base.
#include <cmath>
#include <memory>

#include "targets/product.h"

namespace crais {
namespace {

/// log gamma = -|z - mean|^2 / (2 sd^2); log Z = D (log(2 pi) / 2 + log sd).
///
/// The paper's text has mean 0, but its experiments and this target have mean 1.
class NarrowNormal : public Product {
 public:
  NarrowNormal(const TargetOptions& options, int64_t dim, double mean, double sd)
      : Product(options, dim, static_cast<double>(dim) * (0.5 * std::log(2 * M_PI) + std::log(sd))),
        mean_(mean),
        sd_(sd) {}

 protected:
  std::optional<at::Tensor> draw(const at::Tensor& like, at::Generator& rng) const override {
    return at::empty_like(like).normal_(mean_, sd_, rng);
  }
  at::Tensor log_factors(const at::Tensor& z) const override {
    return (z - mean_).square() * (-0.5 / (sd_ * sd_));
  }
  at::Tensor slopes(const at::Tensor& z) const override { return (mean_ - z) / (sd_ * sd_); }

 private:
  double mean_, sd_;
};

const Enrol<TargetRegistry> kEnrolNormal(
    "normal", {"normal[:DIM,mean=1,sd=0.1]", "N(mean, sd^2 I) in DIM (128) dimensions", "normal:5",
               [](Spec& spec, const TargetOptions& options) {
                 const int64_t dim = read_dim(spec);
                 const double mean = spec.number("mean", -1e6, 1e6, 1);
                 return std::make_unique<NarrowNormal>(options, dim, mean,
                                                       spec.number("sd", 1e-6, 1e6, 0.1));
               }});

const Enrol<TargetRegistry> kEnrolPlane("u6", {"u6", "N((1, 1), 0.01 I) in the plane", "u6",
                                               [](Spec&, const TargetOptions& options) {
                                                 return std::make_unique<NarrowNormal>(options, 2,
                                                                                       1, 0.1);
                                               }});

}  // namespace
}  // namespace crais
