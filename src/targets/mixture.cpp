// Eight normals at the corners of a cube, far from the base and from each other.
#include <cmath>
#include <memory>
#include <vector>

#include "targets/product.h"

namespace crais {
namespace {

constexpr double kCorner = 5.0;
constexpr int64_t kCubeDims = 3;
constexpr int64_t kCorners = 8;

/// gamma = sum over the 8 corners c of {-5, 5}^3 of exp(-|z - (c, -5, ..., -5)|^2 / 2): a product
/// of 3 factors with two modes and D - 3 factors with one. log Z = D log(2 pi) / 2 + log 8.
class CornerMixture : public Product {
 public:
  CornerMixture(const TargetOptions& options, int64_t dim)
      : Product(options, dim, 0.5 * static_cast<double>(dim) * std::log(2 * M_PI) + std::log(8.0)) {
  }

  /// The corners, numbered by the signs of their first three coordinates: bit d is 1 for +5.
  std::optional<Components> components(const at::Tensor& z) const override {
    const at::Tensor up = at::sigmoid(2 * kCorner * z.slice(-1, 0, kCubeDims).to(at::kDouble));
    std::vector<at::Tensor> shares;
    shares.reserve(kCorners);
    for (int64_t c = 0; c < kCorners; ++c) {
      at::Tensor share = at::ones_like(up.select(-1, 0));
      for (int64_t d = 0; d < kCubeDims; ++d)
        share = share * ((c >> d & 1) != 0 ? up.select(-1, d) : 1 - up.select(-1, d));
      shares.push_back(share);
    }
    return Components{at::stack(shares, -1),
                      at::full({kCorners}, 1.0 / kCorners, z.options().dtype(at::kDouble))};
  }

 protected:
  std::optional<at::Tensor> draw(const at::Tensor& like, at::Generator& rng) const override {
    const at::Tensor signs = at::empty_like(like).uniform_(-1, 1, rng).sign();
    const at::Tensor is_cube = at::arange(dim(), like.options()) < kCubeDims;
    const at::Tensor centre = at::where(is_cube, kCorner * signs, at::full_like(signs, -kCorner));
    return centre + at::empty_like(like).normal_(0, 1, rng);
  }
  /// A factor with two modes: log(e^{-(z-5)^2/2} + e^{-(z+5)^2/2}) = -(|z|-5)^2/2 + log(1 +
  /// e^{-10|z|}).
  at::Tensor log_factors(const at::Tensor& z) const override {
    const at::Tensor cube = z.slice(-1, 0, kCubeDims).abs(), rest = z.slice(-1, kCubeDims);
    const at::Tensor two_modes =
        -0.5 * (cube - kCorner).square() + (-2 * kCorner * cube).exp().log1p();
    return at::cat({two_modes, -0.5 * (rest + kCorner).square()}, -1);
  }
  /// The slope towards 5 tanh(5 z), the mean of the modes under their responsibilities.
  at::Tensor slopes(const at::Tensor& z) const override {
    const at::Tensor cube = z.slice(-1, 0, kCubeDims), rest = z.slice(-1, kCubeDims);
    return at::cat({kCorner * at::tanh(kCorner * cube) - cube, -kCorner - rest}, -1);
  }
};

const Enrol<TargetRegistry> kEnrolMixture(
    "mixture[:DIM]", "8 unit normals in DIM (128) dimensions: (+-5, +-5, +-5, -5, ...)",
    "mixture:5", [](Spec& spec, const TargetOptions& options) {
      return std::make_unique<CornerMixture>(options, read_dim(spec, kCubeDims));
    });

}  // namespace
}  // namespace crais
