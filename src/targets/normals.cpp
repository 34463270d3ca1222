// Normals of many scales and positions: tests of the search that starts at N(0, I).
#include <cmath>
#include <memory>

#include "core/rng.h"
#include "targets/gaussian_mixture.h"
#include "targets/replicated_function.h"

namespace crais {
namespace {

/// Mixtures of normals [C,D] in float64. The weights sum to 1, so Z = 1.
std::unique_ptr<Target> normals(const TargetOptions& options, const at::Tensor& means,
                                const at::Tensor& sds, const at::Tensor& weights) {
  const at::Tensor log_kernels =
      sds.log().sum(1) + 0.5 * static_cast<double>(means.size(1)) * std::log(2 * M_PI);
  return std::make_unique<GaussianMixture>(options, means, sds.square(),
                                           weights.log() - log_kernels);
}

const Enrol<TargetRegistry> kEnrolTwoNormals(
    "two-normals",
    {"two-normals[:DIM]", "N(-6, I) / 2 + N(6, I) / 2 in DIM (5) dimensions", "two-normals:2",
     [](Spec& spec, const TargetOptions& options) {
       const int64_t dim = spec.integer("dim", 1, 100'000, 5);
       const at::Tensor means =
           at::tensor({-6.0, 6.0}, at::kDouble).unsqueeze(1) * at::ones({dim}, at::kDouble);
       return normals(options, means, at::ones_like(means), at::full({2}, 0.5, at::kDouble));
     }});

const Enrol<TargetRegistry> kEnrolHalfNormal(
    "half-normal", {"half-normal", "N(0, 1) where z > 0, nothing elsewhere", "half-normal",
                    [](Spec&, const TargetOptions& options) {
                      return std::make_unique<ReplicatedFunction>(
                          options, 1, std::log(0.5), [](const at::Tensor& z) {
                            const at::Tensor x = z.squeeze(-1);
                            return at::where(x > 0, normal_log_density(x), -INFINITY);
                          });
                    }});

const Enrol<TargetRegistry> kEnrolTwoWidths(
    "two-widths", {"two-widths[:DIM]", "N(0, I) / 10 + 9/10 N(3, 0.01^2 I) in DIM (10) dimensions",
                   "two-widths:2", [](Spec& spec, const TargetOptions& options) {
                     const int64_t dim = spec.integer("dim", 1, 100'000, 10);
                     const at::Tensor one = at::ones({dim}, at::kDouble);
                     return normals(options, at::stack({0 * one, 3 * one}),
                                    at::stack({one, 0.01 * one}),
                                    at::tensor({0.1, 0.9}, at::kDouble));
                   }});

const Enrol<TargetRegistry> kEnrolFortyNormals(
    "forty-normals",
    {"forty-normals[:SCALE]", "40 unit normals in [-40, 40]^2, all divided by SCALE (1)",
     "forty-normals:40", [](Spec& spec, const TargetOptions& options) {
       const double scale = spec.number("scale", 0.01, 100, 1);
       at::Generator rng = make_generator(0);
       const at::Tensor means = (at::rand({40, 2}, rng, at::kDouble) * 2 - 1) * 40 / scale;
       return normals(options, means, at::full_like(means, 1 / scale),
                      at::full({40}, 1.0 / 40, at::kDouble));
     }});

/// A rotated normal with standard deviations from 0.001 to 1, under a uniform prior on a box of
/// side 2,000 that contains practically all of its mass.           [dynesty, issue 289]
const Enrol<TargetRegistry> kEnrolNarrow(
    "narrow",
    {"narrow[:DIM]",
     "a rotated normal of sds 0.001 to 1 in DIM (32) dimensions, over a "
     "box of side 2,000",
     "narrow:2", [](Spec& spec, const TargetOptions& options) {
       const int64_t dim = spec.integer("dim", 2, 10'000, 32);
       const double log_volume = static_cast<double>(dim) * std::log(2000);
       at::Generator rng = make_generator(1);
       const at::Tensor q = std::get<0>(at::linalg_qr(at::randn({dim, dim}, rng, at::kDouble)));
       const at::Tensor sd = at::pow(10, at::linspace(-3, 0, dim, at::kDouble));
       const at::Tensor mean = at::linspace(-1, 1, dim, at::kDouble).to(options.tensors);
       const at::Tensor whiten = (q / sd).to(options.tensors);
       const double log_sds = sd.log().sum().item<double>();
       return std::make_unique<ReplicatedFunction>(
           options, dim, -log_volume, [=](const at::Tensor& z) {
             return normal_log_density((z - mean).matmul(whiten)).sum(-1) - log_sds - log_volume;
           });
     }});

}  // namespace
}  // namespace crais
