// Double wells, single and combined: 2^(D/2) modes.         [Noe et al. 2019; Midgley et al. 2023]
#include <cmath>
#include <memory>

#include "targets/replicated.h"
#include "util/error.h"

namespace crais {
namespace {

/// log of the integral of exp(x / 2 + 6 x^2 - x^4), by quadrature. The lesser well holds 16% of it.
constexpr double kLogWell = 9.3745411738692;

at::Tensor log_well(const at::Tensor& x) { return 0.5 * x + 6 * x.square() - x.square().square(); }

const Enrol<TargetRegistry> kEnrolDoubleWell(
    "double-well", "exp(z/2 + 6 z^2 - z^4) on the line: the lesser well holds 16%", "double-well",
    [](Spec&, const TargetOptions& options) {
      return std::make_unique<ReplicatedFunction>(
          options, 1, kLogWell, [](const at::Tensor& z) { return log_well(z).sum(-1); });
    });

const Enrol<TargetRegistry> kEnrolManyWell(
    "many-well[:DIM]", "DIM / 2 (16) double wells, each beside a normal", "many-well:2",
    [](Spec& spec, const TargetOptions& options) {
      const int64_t dim = spec.integer("dim", 2, 100'000, 32);
      if (dim % 2 != 0) throw argument_error("'", spec.text(), "': DIM must be even");
      const double pair = kLogWell + 0.5 * std::log(2 * M_PI);
      return std::make_unique<ReplicatedFunction>(
          options, dim, static_cast<double>(dim / 2) * pair, [](const at::Tensor& z) {
            const at::Tensor x = z.slice(-1, 0, {}, 2), y = z.slice(-1, 1, {}, 2);
            return (log_well(x) - 0.5 * y.square()).sum(-1);
          });
    });

}  // namespace
}  // namespace crais
