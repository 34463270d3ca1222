#include "schedules/adaptive.h"

#include <cmath>
#include <sstream>

#include "core/log_math.h"
#include "util/error.h"

namespace crais {

at::Tensor Progress::pool(const at::Tensor& statistic) const {
  return shared ? statistic.mean().expand_as(statistic) : statistic;
}

at::Tensor AdaptiveSchedule::next(const Progress& progress, const Path& path) const {
  // Steps may shrink for ever towards 1, as those of constant-length on a power path do; and what
  // is left of the way must be enough for the steps that a plan is stretched to.
  constexpr double kResolution = 1e-12;
  const at::Tensor& beta = progress.beta;
  const at::Tensor wish = propose(progress, path);
  const at::Tensor allowed =
      at::minimum(at::maximum(wish, beta + options_.min_step), beta + options_.max_step);
  const at::Tensor clipped =
      allowed.masked_fill(at::isposinf(wish) | (allowed > 1 - kResolution), 1.0);
  const at::Tensor stuck = ~(clipped > beta) & (beta < 1);
  if (stuck.any().item<bool>()) {
    const int64_t p = stuck.nonzero()[0].item<int64_t>();
    std::ostringstream message;
    message << "schedule " << name() << " stalled at beta = " << beta[p].item<double>()
            << " (problem " << p << ", step " << progress.index << "): it asks for "
            << wish[p].item<double>()
            << "; allow larger steps, set `min_step`, or use more `pilot_chains`";
    throw ScheduleError(ScheduleError::Reason::kStalled, beta[p].item<double>(), progress.index,
                        message.str());
  }
  return clipped;
}

at::Tensor AdaptiveSchedule::statistic_weights(const Progress& progress, bool weighted) {
  return log_normalise(weighted ? progress.log_w : at::zeros_like(progress.log_w));
}

at::Tensor SearchedSchedule::propose(const Progress& progress, const Path& path) const {
  const auto log_density = [&](const at::Tensor& beta) {
    return annealed(path, beta, progress.particles).log_density;
  };
  const at::Tensor here = log_density(progress.beta);
  const at::Tensor log_w = weights(progress);
  const at::Tensor bound = ratio_ * progress.pool(fraction(log_w, at::zeros_like(here)));
  return largest_step(progress.beta, options().max_step, bound, [&](const at::Tensor& beta) {
    return progress.pool(fraction(log_w, log_density(beta) - here));
  });
}

at::Tensor largest_step(const at::Tensor& beta, double max_step, const at::Tensor& bound,
                        const std::function<at::Tensor(const at::Tensor&)>& statistic) {
  constexpr int kMostEvaluations = 150;
  constexpr double kTolerance = 1e-11;  // of the step
  const at::Tensor farthest = (beta + max_step).clamp_max(1.0);
  // The root lies between `a`, the latest point, and `b`; `c` was there before.
  at::Tensor a = farthest, b = beta, c = b;
  at::Tensor fa = statistic(a) - bound, fb = statistic(b) - bound, fc = fb;
  const at::Tensor whole_step = fa >= 0;
  // While only the start is good, an eighth of the way: steps may be orders of magnitude shorter.
  at::Tensor t = at::full_like(a, 0.875);
  for (int i = 0; i < kMostEvaluations; ++i) {
    const at::Tensor x = a + t * (b - a);
    const at::Tensor fx = statistic(x) - bound;
    const at::Tensor same_side = (fx >= 0) == (fa >= 0);
    c = at::where(same_side, a, b);
    fc = at::where(same_side, fa, fb);
    b = at::where(same_side, b, a);
    fb = at::where(same_side, fb, fa);
    a = x;
    fa = fx;
    const at::Tensor width = (b - a).abs(), least = kTolerance * (at::maximum(a, b) - beta);
    if ((whole_step | (width <= 2 * least)).all().item<bool>()) break;
    // Inverse quadratic interpolation where the three points allow.
    const at::Tensor xi = (a - b) / (c - b), phi = (fa - fb) / (fc - fb);
    const at::Tensor interpolated =
        fa / (fb - fa) * (fc / (fb - fc)) + (c - a) / (b - a) * (fa / (fc - fa)) * (fb / (fc - fb));
    const at::Tensor usable = (phi.square() < xi) & ((1 - phi).square() < 1 - xi);
    const at::Tensor halving = at::where((b == beta) | (a == beta), 0.875, 0.5);
    const at::Tensor margin = least / width;
    t = at::where(usable & interpolated.isfinite(), interpolated, halving);
    t = at::minimum(at::maximum(t, margin), 1 - margin).nan_to_num(0.0);  // arrived: no width
  }
  return at::where(whole_step, farthest, at::where(fa >= 0, a, b));
}

}  // namespace crais
