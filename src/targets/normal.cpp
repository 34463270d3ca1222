// A narrow normal, away from the base: means 1, sd 0.1.
#include <cmath>
#include <memory>

#include "targets/product.h"

namespace crais {
namespace {

constexpr double kMean = 1.0, kSd = 0.1;

/// log gamma = -|z - 1|^2 / (2 0.01); log Z = D (log(2 pi) / 2 + log 0.1).
///
/// Differs from the paper: its text has mean 0, its experiments have mean 1.
class NarrowNormal : public Product {
 public:
  NarrowNormal(const TargetOptions& options, int64_t dim)
      : Product(options, dim,
                static_cast<double>(dim) * (0.5 * std::log(2 * M_PI) + std::log(kSd))) {}

 protected:
  std::optional<at::Tensor> draw(const at::Tensor& like, at::Generator& rng) const override {
    return at::empty_like(like).normal_(kMean, kSd, rng);
  }
  at::Tensor log_factors(const at::Tensor& z) const override {
    return (z - kMean).square() * (-0.5 / (kSd * kSd));
  }
  at::Tensor slopes(const at::Tensor& z) const override { return (kMean - z) / (kSd * kSd); }
};

const Enrol<TargetRegistry> kEnrol("normal",
                                   {"normal[:DIM]", "N(1, 0.01 I) in DIM (128) dimensions",
                                    "normal:5", [](Spec& spec, const TargetOptions& options) {
                                      return std::make_unique<NarrowNormal>(options,
                                                                            read_dim(spec));
                                    }});

const Enrol<TargetRegistry> kEnrolPlane("u6", {"u6", "N((1, 1), 0.01 I) in the plane", "u6",
                                               [](Spec&, const TargetOptions& options) {
                                                 return std::make_unique<NarrowNormal>(options, 2);
                                               }});

}  // namespace
}  // namespace crais
