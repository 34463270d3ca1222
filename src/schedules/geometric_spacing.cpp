// beta_1 = first, each next one a constant factor larger, beta_T = 1. What the paper's tables call
// exponential: its released code spaces T betas geometrically from 0.001 to 1.
#include <cmath>

#include "schedules/fixed.h"

namespace crais {
namespace {

const Enrol<ScheduleRegistry> kEnrolGeometricSpacing(
    "geometric",
    {"geometric[:FIRST]", "FIRST (0.001) to 1 by a constant factor: the paper's tables' 'Exp.'",
     "geometric", [](Spec& spec, const ScheduleOptions& options) {
       const double first = spec.number("first", 1e-12, 0.999, 1e-3);
       const auto steps = static_cast<double>(options.steps);
       return make_heuristic(options.steps, [=](double t) {
         return std::pow(first, 1.0 - (t * steps - 1.0) / (steps - 1.0));
       });
     }});

}  // namespace
}  // namespace crais
