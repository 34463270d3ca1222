// Schedules that are known before the run: heuristics, files and frozen plans.
#include "schedules/fixed.h"

#include <cmath>
#include <utility>
#include <vector>

#include "io/csv.h"
#include "util/error.h"

namespace crais {
namespace {

const Enrol<ScheduleRegistry> kEnrolFixed(
    "file:F", "betas from a file, one a line (or its column 'beta'), from 0 to 1", "",
    [](Spec& spec, const ScheduleOptions&) {
      const std::string path = spec.word("path");
      const std::vector<double> betas = read_csv(path).numbers("beta");
      try {
        return std::make_unique<FixedSchedule>(at::tensor(betas, at::kDouble).unsqueeze(1));
      } catch (const Error& error) {
        throw data_error(path, ": ", error.what());
      }
    });

/// beta_i = t.
const Enrol<ScheduleRegistry> kEnrolLinear("linear", "equal steps", "linear",
                                           [](Spec&, const ScheduleOptions& options) {
                                             return make_heuristic(options.steps,
                                                                   [](double t) { return t; });
                                           });

double logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }

/// beta_i = (s(x_i) - s(x_0)) / (s(x_T) - s(x_0)) with the logistic function s and x from -1/scale
/// to 1/scale. The paper's tables used scale 0.3.
const Enrol<ScheduleRegistry> kEnrolSigmoidal(
    "sigmoidal[:SCALE]", "slow at both ends; SCALE 0.3 as in the paper's tables", "sigmoidal",
    [](Spec& spec, const ScheduleOptions& options) {
      const double end = 1.0 / spec.number("scale", 0.03, 100.0, 0.3);
      const double low = logistic(-end), high = logistic(end);
      return make_heuristic(options.steps, [=](double t) {
        return (logistic((2 * t - 1) * end) - low) / (high - low);
      });
    });

/// beta_i = (1 - eps^t) / (1 - eps): the paper's 1 - eps^i, scaled so that the last step reaches 1.
const Enrol<ScheduleRegistry> kEnrolExponential(
    "exponential[:EPS]", "1 - EPS^(i/T) as the paper's text has it: fast at the start",
    "exponential", [](Spec& spec, const ScheduleOptions& options) {
      const double eps = spec.number("eps", 1e-12, 0.999, 1e-3);
      return make_heuristic(options.steps,
                            [=](double t) { return (1 - std::pow(eps, t)) / (1 - eps); });
    });

/// beta_1 = first, each next beta larger by a constant factor, beta_T = 1. The paper's tables call
/// this exponential: its released code spaces T betas geometrically from 0.001 to 1.
const Enrol<ScheduleRegistry> kEnrolGeometricSpacing(
    "geometric[:FIRST]", "FIRST (0.001) to 1 by a constant factor: the paper's tables' 'Exp.'",
    "geometric", [](Spec& spec, const ScheduleOptions& options) {
      const double first = spec.number("first", 1e-12, 0.999, 1e-3);
      const auto steps = static_cast<double>(options.steps);
      return make_heuristic(options.steps, [=](double t) {
        return std::pow(first, 1.0 - (t * steps - 1.0) / (steps - 1.0));
      });
    });

}  // namespace

FixedSchedule::FixedSchedule(at::Tensor betas) : betas_(std::move(betas)) {
  TORCH_CHECK(betas_.dim() == 2, "schedule: betas must be [T+1,P]");
  if (betas_.size(0) < 2) throw data_error("fewer than two betas are no schedule");
  const at::Tensor step = betas_.diff(1, 0);
  const at::Tensor previous = betas_.slice(0, 0, -1);
  if (!(betas_[0] == 0).all().item<bool>() || !(betas_[-1] == 1).all().item<bool>())
    throw data_error("a schedule must start at beta = 0 and end at 1");
  if (!((step > 0) | ((step == 0) & (previous == 1))).all().item<bool>())
    throw data_error("a schedule must rise at every step");
}

at::Tensor FixedSchedule::next(const Progress& progress, const Path&) const {
  return betas_[progress.index + 1].to(progress.beta.device()).expand_as(progress.beta);
}

std::unique_ptr<ScheduleRule> make_heuristic(int64_t steps,
                                             const std::function<double(double)>& shape) {
  at::Tensor betas = at::zeros({steps + 1, 1}, at::kDouble);
  auto* beta = betas.data_ptr<double>();
  for (int64_t i = 1; i < steps; ++i)
    beta[i] = shape(static_cast<double>(i) / static_cast<double>(steps));
  beta[steps] = 1.0;
  return std::make_unique<FixedSchedule>(betas);
}

}  // namespace crais
