#include "schedules/adaptive.h"

#include <cmath>
#include <sstream>

#include "core/error.h"
#include "core/log_math.h"

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
            << "; allow larger steps, set --min-step, or use more pilot chains";
    throw usage_error(message.str());
  }
  return clipped;
}

at::Tensor AdaptiveSchedule::statistic_weights(const Progress& progress) const {
  return log_normalise(options_.weighted ? progress.log_w : at::zeros_like(progress.log_w));
}

at::Tensor SearchedSchedule::propose(const Progress& progress, const Path& path) const {
  const auto log_density = [&](const at::Tensor& beta) {
    const Particles& particles = progress.particles;
    return path.at(beta.unsqueeze(1), particles.log_q0, particles.log_gamma).log_density;
  };
  const at::Tensor here = log_density(progress.beta);
  const at::Tensor bound = ratio_ * progress.pool(whole(progress));
  return largest_step(progress.beta, options().max_step, bound, [&](const at::Tensor& beta) {
    return progress.pool(fraction(progress, log_density(beta) - here));
  });
}

at::Tensor largest_step(const at::Tensor& beta, double max_step, const at::Tensor& bound,
                        const std::function<at::Tensor(const at::Tensor&)>& statistic) {
  // False position with Illinois' rule, every third time halving: half of the evaluations that
  // halving alone takes, which cost as much as the density's.
  constexpr int kMostEvaluations = 150;
  constexpr double kTolerance = 1e-11;  // of the step
  at::Tensor low = beta, high = (beta + max_step).clamp_max(1.0);
  at::Tensor above = statistic(low) - bound, below = statistic(high) - bound;
  const at::Tensor whole_step = below >= 0;
  at::Tensor was_good = at::zeros_like(whole_step);
  for (int i = 0; i < kMostEvaluations; ++i) {
    const at::Tensor width = high - low;
    if ((whole_step | (width <= kTolerance * (high - beta))).all().item<bool>()) break;
    const at::Tensor share = above / (above - below);
    const at::Tensor usable = (share > 0) & (share < 1);  // not NaN
    const at::Tensor middle =
        low + width * (i % 3 == 2 ? at::full_like(share, 0.5) : share.masked_fill(~usable, 0.5));
    const at::Tensor value = statistic(middle) - bound;
    const at::Tensor good = value >= 0, twice = good == was_good;
    // The end that stays a second time counts half, so that the next point falls beyond the root.
    above = at::where(good, value, at::where(twice, 0.5 * above, above));
    below = at::where(good, at::where(twice, 0.5 * below, below), value);
    low = at::where(good, middle, low);
    high = at::where(good, high, middle);
    was_good = good;
  }
  return at::where(whole_step, (beta + max_step).clamp_max(1.0), low);
}

}  // namespace crais
