#include "evaluation/control.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "evaluation/parts.h"
#include "evaluation/summary.h"

namespace crais {
namespace {

// On 80 random decoders with known log p(x), 32 images each: of 55 without a wrong image, these
// doubt 2; of 25 others all but 3, whose largest errors are 0.1 to 0.3 nats.
constexpr double kErrors = 6.0;
constexpr double kSmall = 0.1;  // nats: a gap that does not matter
constexpr int64_t kMissed = 2;  // images; one alone is chance in 1 run of 20
// Real images are clearly harder if their errors are larger by this factor, and matter.
constexpr double kHarder = 3.0;

/// The median of a column over images and repeats, without those that are not known.
double median_of(const MethodTable& table, const std::string& column) {
  const at::Tensor values = table.matrix(column).flatten();
  const at::Tensor known = values.masked_select(values.isfinite());
  return known.numel() > 0 ? known.median().item<double>() : NAN;
}

Hardness hardness_of(const MethodTable& table) {
  return {median_of(table, "ess"), median_of(table, "std_error")};
}

/// One image's errors, or several that count as one.
bool exceeds(double excess, double std_error) {
  return excess > kSmall && !(excess <= kErrors * std_error);
}

}  // namespace

int64_t default_control(int64_t num_images) { return std::clamp<int64_t>(num_images / 8, 16, 32); }

TunedEstimator control_of(const TunedEstimator& tuned) {
  EstimateOptions options = tuned.options();
  options.methods = {kControlMethod};
  options.repeats = 1;
  options.expectations.clear();
  options.keep_particles = false;
  options.budget.reset();
  options.target_error.reset();
  options.mean_error.reset();
  TunedState state = tuned.state();
  state.by_spread.reset();
  state.learned.clear();
  const auto parts = std::make_shared<const EstimatorParts>(std::move(options));
  return {parts, std::move(state), parts->methods};
}

std::optional<Control> control_of(const RunResults& results) {
  if (results.control.empty() || results.chunks.empty()) return {};
  const MethodTable both = tables({results.control, {}, {}}).front();
  const at::Tensor lower = both.matrix("log_normalizer")[0], upper = both.matrix("upper")[0];
  // An error or a bias that nobody knows explains nothing.
  const auto known = [&](const char* column) { return both.matrix(column)[0].nan_to_num(0, 0, 0); };
  const at::Tensor gap = upper - lower, explained = -2 * known("bias");
  const at::Tensor std_error = at::hypot(known("std_error"), known("upper_std_error"));
  Control control;
  control.images = gap.numel();
  control.lower = lower.mean().item<double>();
  control.upper = upper.mean().item<double>();
  control.gap = gap.mean().item<double>();
  control.gap_std_error = std_error_of_mean(gap);
  control.stated = explained.mean().item<double>();
  const std::vector<double> excess = to_column(gap - explained), error = to_column(std_error);
  for (size_t i = 0; i < excess.size(); ++i) control.missed += exceeds(excess[i], error[i]) ? 1 : 0;
  const double chance = std_error.norm().item<double>() / static_cast<double>(control.images);
  if (control.missed >= kMissed || exceeds(control.gap - control.stated, chance))
    control.doubts.push_back(Doubt::kControl);
  for (const auto& [number, chunk] : results.control)
    control.evaluations += static_cast<double>(chunk.base.densities + chunk.tuning.densities);
  control.evaluations += static_cast<double>(both.cost.densities);
  control.simulated = hardness_of(both);
  control.real = hardness_of(tables(results).front());
  if (control.real.std_error > std::max(kSmall, kHarder * control.simulated.std_error))
    control.doubts.push_back(Doubt::kHarder);
  return control;
}

}  // namespace crais
