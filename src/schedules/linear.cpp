// beta_i = i / T
#include "schedules/fixed.h"

namespace crais {
namespace {

const Enrol<ScheduleRegistry> kEnrolLinear(
    "linear", {"linear", "equal steps", "linear", [](Spec&, const ScheduleOptions& options) {
                 return make_heuristic(options.steps, [](double t) { return t; });
               }});

}  // namespace
}  // namespace crais
