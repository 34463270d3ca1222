// beta_i = (s(x_i) - s(x_0)) / (s(x_T) - s(x_0)), s the logistic function, x from -1/scale to
// 1/scale. The paper's tables used scale 0.3.
#include <cmath>

#include "schedules/fixed.h"

namespace crais {
namespace {

double logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }

const Enrol<ScheduleRegistry> kEnrolSigmoidal(
    "sigmoidal", {"sigmoidal[:SCALE]", "slow at both ends; SCALE 0.3 as in the paper's tables",
                  "sigmoidal", [](Spec& spec, const ScheduleOptions& options) {
                    const double end = 1.0 / spec.number("scale", 0.03, 100.0, 0.3);
                    const double low = logistic(-end), high = logistic(end);
                    return make_heuristic(options.steps, [=](double t) {
                      return (logistic((2 * t - 1) * end) - low) / (high - low);
                    });
                  }});

}  // namespace
}  // namespace crais
