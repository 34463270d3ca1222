// beta_i = (1 - eps^{i/T}) / (1 - eps): the paper's 1 - eps^i, with a last step that reaches 1.
#include <cmath>

#include "schedules/fixed.h"

namespace crais {
namespace {

const Enrol<ScheduleRegistry> kEnrolExponential(
    "exponential",
    {"exponential[:EPS]", "1 - EPS^(i/T) as the paper's text has it: fast at the start",
     "exponential", [](Spec& spec, const ScheduleOptions& options) {
       const double eps = spec.number("eps", 1e-12, 0.999, 1e-3);
       return make_heuristic(options.steps,
                             [=](double t) { return (1 - std::pow(eps, t)) / (1 - eps); });
     }});

}  // namespace
}  // namespace crais
