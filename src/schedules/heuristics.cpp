// Schedules that are formulas of t = i / T.
#include <cmath>

#include "schedules/fixed.h"

namespace crais {
namespace {

/// beta_i = t.
const Enrol<ScheduleRegistry> kEnrolLinear(
    "linear", {"linear", "equal steps", "linear", [](Spec&, const ScheduleOptions& options) {
                 return make_heuristic(options.steps, [](double t) { return t; });
               }});

double logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }

/// beta_i = (s(x_i) - s(x_0)) / (s(x_T) - s(x_0)) with the logistic function s and x from -1/scale
/// to 1/scale. The paper's tables used scale 0.3.
const Enrol<ScheduleRegistry> kEnrolSigmoidal(
    "sigmoidal", {"sigmoidal[:SCALE]", "slow at both ends; SCALE 0.3 as in the paper's tables",
                  "sigmoidal", [](Spec& spec, const ScheduleOptions& options) {
                    const double end = 1.0 / spec.number("scale", 0.03, 100.0, 0.3);
                    const double low = logistic(-end), high = logistic(end);
                    return make_heuristic(options.steps, [=](double t) {
                      return (logistic((2 * t - 1) * end) - low) / (high - low);
                    });
                  }});

/// beta_i = (1 - eps^t) / (1 - eps): the paper's 1 - eps^i, scaled so that the last step reaches 1.
const Enrol<ScheduleRegistry> kEnrolExponential(
    "exponential",
    {"exponential[:EPS]", "1 - EPS^(i/T) as the paper's text has it: fast at the start",
     "exponential", [](Spec& spec, const ScheduleOptions& options) {
       const double eps = spec.number("eps", 1e-12, 0.999, 1e-3);
       return make_heuristic(options.steps,
                             [=](double t) { return (1 - std::pow(eps, t)) / (1 - eps); });
     }});

/// beta_1 = first, each next beta larger by a constant factor, beta_T = 1. The paper's tables call
/// this exponential: its released code spaces T betas geometrically from 0.001 to 1.
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
