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
  constexpr int kHalvings = 50;  // to the last bit of a double
  at::Tensor low = beta, high = (beta + max_step).clamp_max(1.0);
  const at::Tensor whole_step = statistic(high) >= bound;
  for (int i = 0; i < kHalvings; ++i) {
    const at::Tensor middle = 0.5 * (low + high);
    const at::Tensor good = statistic(middle) >= bound;
    low = at::where(good, middle, low);
    high = at::where(good, high, middle);
  }
  return at::where(whole_step, (beta + max_step).clamp_max(1.0), low);
}

}  // namespace crais
