// Brownian motion with unknown scales, observed with gaps.                         [inference-gym]
#include <cmath>
#include <memory>
#include <vector>

#include "targets/replicated_function.h"

namespace crais {
namespace {

// Observations at steps 1 to 10 and 21 to 30 of 30.
const std::vector<double> kBefore = {0.21592641,  0.118771404, -0.07945447, 0.037677474,
                                     -0.27885845, -0.1484156,  -0.3250906,  -0.22957903,
                                     -0.44110894, -0.09830782};
const std::vector<double> kAfter = {-0.8786016,  -0.83736074, -0.7384849,  -0.8939254, -0.7774566,
                                    -0.70238715, -0.87771565, -0.51853573, -0.6948214, -0.6202789};
constexpr int64_t kSteps = 30;
constexpr double kLogZ = 1.1877491;  // by quadrature over a and b

/// z = (log a, log b, x [30]). x is a random walk with steps N(0, a^2), observed with errors N(0,
/// b^2). a and b are LogNormal(0, 2).
ReplicatedFunction::LogDensity brownian(const at::TensorOptions& tensors) {
  const at::Tensor y = at::cat({at::tensor(kBefore, tensors), at::tensor(kAfter, tensors)});
  return [y](const at::Tensor& z) {
    const at::Tensor log_a = z.slice(-1, 0, 1), log_b = z.slice(-1, 1, 2), x = z.slice(-1, 2);
    const at::Tensor before = at::cat({at::zeros_like(x.slice(-1, 0, 1)), x.slice(-1, 0, -1)}, -1);
    const at::Tensor walk = normal_log_density((x - before) * (-log_a).exp()) - log_a;
    const at::Tensor seen = at::cat({x.slice(-1, 0, 10), x.slice(-1, 20)}, -1);
    const at::Tensor errors = normal_log_density((y - seen) * (-log_b).exp()) - log_b;
    const at::Tensor prior = normal_log_density(z.slice(-1, 0, 2), 0, 2);
    return prior.sum(-1) + walk.sum(-1) + errors.sum(-1);
  };
}

const Enrol<TargetRegistry> kEnrolBrownian(
    "brownian", {"brownian", "a walk of 30 steps seen at 20, and its two scales", "brownian",
                 [](Spec&, const TargetOptions& options) {
                   return std::make_unique<ReplicatedFunction>(options, kSteps + 2, kLogZ,
                                                               brownian(options.tensors));
                 }});

}  // namespace
}  // namespace crais
