#include "evaluation/control.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "evaluation/parts.h"
#include "evaluation/summary.h"
#include "samplers/plan.h"
#include "util/parallel.h"

namespace crais {
namespace {

// On 80 random decoders with known log p(x), 32 images each: of 55 without a wrong image, these
// doubt 1; of 25 others all but 3, whose largest errors are 0.1 to 0.3 nats. One image alone
// doubts nothing: a run in which 1 of 20 is wrong has mostly right images.
constexpr double kUnexplained = 6.0;
constexpr double kSmall = 0.2;       // nats: a mean gap that does not matter
constexpr int64_t kMissed = 2;       // images with a gap above kLargeGap
constexpr double kSmallError = 0.1;  // nats
// Real images are clearly harder if their errors are larger by this factor, and matter.
constexpr double kHarder = 3.0;
// Transitions double until that brings the bounds nearer by less than this factor, twice: a gap of
// few images varies.
constexpr double kGain = 0.75;
constexpr int64_t kInVain = 2;

/// Medians over images and repeats, without those that are not known.
Hardness hardness_of(const MethodTable& table) {
  const auto median = [&](const char* column) {
    return table.matrix(column).nanmedian().item<double>();
  };
  return {median("ess"), median("std_error")};
}

bool exceeds(double excess, double least, double std_error) {
  return excess > least && !(excess <= kUnexplained * std_error);
}

/// All but the comparison with the run's own images.
Control bounds_of(const std::map<int64_t, ChunkResult>& chunks) {
  const MethodTable both = tables({chunks, {}, {}}).front();
  const at::Tensor lower = both.matrix("log_normalizer")[0], upper = both.matrix("upper")[0];
  // An error or a bias that nobody knows explains nothing.
  const auto known = [&](const char* column) { return both.matrix(column)[0].nan_to_num(0, 0, 0); };
  const at::Tensor gap = upper - lower, explained = -2 * known("bias");
  const at::Tensor std_error = at::hypot(known("std_error"), known("upper_std_error"));
  Control control{.images = gap.numel(), .lower = lower.mean().item<double>()};
  control.upper = upper.mean().item<double>();
  control.gap = gap.mean().item<double>();
  control.gap_std_error = std_error_of_mean(gap);
  control.chance = std_error.norm().item<double>() / static_cast<double>(control.images);
  const at::Tensor unexplained = gap - explained;
  control.excess = (unexplained.sum() - unexplained.max()).item<double>() /
                   static_cast<double>(std::max<int64_t>(1, control.images - 1));
  const std::vector<double> excess = to_column(unexplained), error = to_column(std_error);
  for (size_t i = 0; i < excess.size(); ++i)
    control.missed += exceeds(excess[i], kLargeGap, error[i]) ? 1 : 0;
  for (const auto& [number, chunk] : chunks)
    control.evaluations += static_cast<double>(chunk.base.densities + chunk.tuning.densities);
  control.evaluations += static_cast<double>(both.cost.densities);
  control.simulated = hardness_of(both);
  return control;
}

}  // namespace

int64_t default_control(int64_t num_images) { return std::clamp<int64_t>(num_images / 8, 16, 32); }

TunedEstimator control_estimator(const TunedEstimator& tuned) {
  EstimateOptions options = tuned.options();
  options.methods = {kControlMethod};
  options.repeats = 1;
  options.expectations.clear();
  options.keep_particles = false;
  options.budget.reset();
  options.error.reset();
  TunedState state = tuned.state();
  state.learned.clear();
  const auto parts = std::make_shared<const EstimatorParts>(std::move(options));
  return {parts, std::move(state), parts->methods};
}

bool is_reached(const Control& control, double error) {
  constexpr double kChance = 2.0;
  return control.gap <= error + kChance * std::min(control.chance, error) &&
         control.missed < kMissed;
}

std::optional<Control> control_of(const RunResults& results, std::optional<double> error,
                                  bool is_asked) {
  constexpr double kClearly = 2.0;  // standard errors
  // Other methods, such as IWAE beside it, do not follow the plan.
  const std::vector<MethodTable> all = tables(results);
  const auto annealed = std::find_if(all.begin(), all.end(),
                                     [](const auto& table) { return table.has("accept_prob"); });
  if (results.control.empty() || annealed == all.end()) return {};
  Control control = bounds_of(results.control);
  control.real = hardness_of(*annealed);
  if (control.missed >= kMissed || exceeds(control.excess, kSmall, control.chance))
    control.doubts.push_back(Doubt::kControl);
  else if (error && !is_reached(control, *error) &&
           (is_asked || control.gap - kClearly * control.gap_std_error > *error))
    control.doubts.push_back(Doubt::kUnreached);
  if (control.real.std_error > std::max(kSmallError, kHarder * control.simulated.std_error))
    control.doubts.push_back(Doubt::kHarder);
  return control;
}

std::optional<Lengthened> lengthened(const TunedEstimator& tuned, const Chunks& chunks,
                                     const ControlImages& images, int64_t threads,
                                     const std::function<bool()>& stop) {
  const EstimateOptions& asked = tuned.options();
  TunedState state = tuned.state();
  std::optional<Lengthened> best;
  double least = std::numeric_limits<double>::infinity();
  Cost after;  // of the rounds after the best one
  for (int64_t in_vain = 0;;) {
    const TunedEstimator both = control_estimator(tuned.with(state));
    std::map<int64_t, ChunkResult> found;
    Cost fits, estimates;
    std::mutex mutex;
    const auto compute = [&](int64_t i) {
      const c10::NoGradGuard no_grad;
      const int64_t c = chunks.first_control() + i;
      ChunkResult result = both.estimate(c, *images(chunks.begin(c), chunks.end(c)));
      const std::lock_guard lock(mutex);
      fits += result.base + result.tuning;
      estimates += result.runs.front().cost;
      found.emplace(c, std::move(result));
    };
    parallel_for(chunks.count() - chunks.first_control(), threads, compute, stop);
    if (stop()) return {};
    const Control control = bounds_of(found);
    const double distance = std::max(control.gap, control.chance);
    const Cost all = fits + estimates;
    const bool is_enough = is_reached(control, *asked.error);
    if (!best || is_enough || distance <= kGain * least) {
      least = distance;
      best = {tuned.with(state), std::move(found)};
      after = {};
      in_vain = 0;
    } else {  // the shorter plan does as well
      after += all;
      ++in_vain;
    }
    // Both ways cost as much as one way of twice the length.
    const double longer =
        static_cast<double>(estimates.densities) / static_cast<double>(control.images);
    if (is_enough || in_vain == kInVain || longer > asked.max_evaluations) {
      TunedState kept = best->tuned.state();
      kept.tuning += after;
      best->tuned = best->tuned.with(std::move(kept));
      return best;
    }
    state.tuning += all;
    state.plan = interpolate(*state.plan, 2 * state.plan->num_steps());
  }
}

}  // namespace crais
