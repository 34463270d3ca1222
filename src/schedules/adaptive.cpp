#include "schedules/adaptive.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/log_math.h"
#include "util/error.h"

namespace crais {

at::Tensor Progress::pool(const at::Tensor& statistic) const {
  return shared ? statistic.mean().expand_as(statistic) : statistic;
}

at::Tensor AdaptiveSchedule::next(const Progress& progress, const Path& path) const {
  // Steps may shrink without end towards 1, as constant-length steps do on a power path. The rest
  // of the way must also be long enough for the steps that a plan is stretched to.
  constexpr double kResolution = 1e-12;
  const at::Tensor& beta = progress.beta;
  const at::Tensor wish = propose(progress, path);
  const at::Tensor allowed =
      at::minimum(at::maximum(wish, beta + options_.min_step), beta + options_.max_step);
  at::Tensor clipped = allowed.masked_fill(at::isposinf(wish) | (allowed > 1 - kResolution), 1.0);
  const at::Tensor stuck = ~(clipped > beta) & (beta < 1);
  if (stuck.any().item<bool>()) {
    const int64_t p = stuck.nonzero()[0].item<int64_t>();
    const auto reached = beta[p].item<double>();
    throw ScheduleError(
        ScheduleError::Reason::kStalled, reached, progress.index,
        c10::str("schedule ", name(), " stalled at beta = ", reached, " (problem ", p, ", step ",
                 progress.index, "): it asks for ", wish[p].item<double>(),
                 "; allow larger steps, set `min_step`, or use more `pilot_chains`"));
  }
  return clipped;
}

at::Tensor AdaptiveSchedule::statistic_weights(const Progress& progress, bool weighted) {
  return log_normalise(weighted ? progress.log_w : at::zeros_like(progress.log_w));
}

namespace {

/// Finds the end of the longest good step of one problem, between a good point and a bad point: by
/// inverse quadratic interpolation if three points allow it, else by halving. `above` is the excess
/// of the statistic over its bound; at a good point it is at least 0.       [Chandrupatla 1997]
class StepSearch {
 public:
  StepSearch(double beta, double above_beta, double farthest, double above_farthest)
      : beta_(beta),
        farthest_(farthest),
        whole_step_(above_farthest >= 0),
        latest_{farthest, above_farthest},
        other_{beta, above_beta},
        before_(other_) {}

  bool has_arrived() const {
    return whole_step_ || std::abs(other_.x - latest_.x) <= 2 * resolution();
  }
  /// The next point to evaluate; the last point again once the search has arrived.
  double next() const {
    return has_arrived() ? latest_.x : latest_.x + share_ * (other_.x - latest_.x);
  }
  /// Adds the evaluation of a point.
  void add(double x, double above) {
    if (has_arrived()) return;
    const Point point{x, above};
    const bool same_side = point.is_good() == latest_.is_good();
    before_ = same_side ? latest_ : other_;
    if (!same_side) other_ = latest_;
    latest_ = point;
    const double margin = resolution() / std::abs(other_.x - latest_.x);
    share_ = std::min(std::max(share(), margin), 1 - margin);
  }
  double end() const { return whole_step_ ? farthest_ : latest_.is_good() ? latest_.x : other_.x; }

 private:
  struct Point {
    double x, above;
    bool is_good() const { return above >= 0; }
  };

  double resolution() const {
    constexpr double kTolerance = 1e-11;  // as a share of the step
    return kTolerance * (std::max(latest_.x, other_.x) - beta_);
  }
  /// The next point, as a share of the way from the latest point to the point across the root.
  double share() const {
    const auto& [a, fa] = latest_;
    const auto& [b, fb] = other_;
    const auto& [c, fc] = before_;
    const double xi = (a - b) / (c - b), phi = (fa - fb) / (fc - fb);
    const double interpolated =
        fa / (fb - fa) * (fc / (fb - fc)) + (c - a) / (b - a) * (fa / (fc - fa)) * (fb / (fc - fb));
    if (phi * phi < xi && (1 - phi) * (1 - phi) < 1 - xi && std::isfinite(interpolated))
      return interpolated;
    return a == beta_ || b == beta_ ? kTowardsStart : 0.5;
  }

  // The first steps back, while only the start is good: to an eighth of the way, because the step
  // may be orders of magnitude shorter.
  static constexpr double kTowardsStart = 0.875;

  double beta_, farthest_;
  bool whole_step_;
  Point latest_, other_, before_;  // the root lies between the first two
  double share_ = kTowardsStart;
};

}  // namespace

at::Tensor largest_step(const at::Tensor& beta, double max_step, const at::Tensor& bound,
                        const std::function<at::Tensor(const at::Tensor&)>& statistic) {
  constexpr int kMostEvaluations = 150;
  const auto above = [&](const at::Tensor& x) {
    return (statistic(x) - bound).to(at::kCPU, at::kDouble).contiguous();
  };
  const at::Tensor farthest = (beta + max_step).clamp_max(1.0);
  const at::Tensor above_farthest = above(farthest), above_beta = above(beta);
  const at::Tensor start = beta.cpu().contiguous(), goal = farthest.cpu().contiguous();
  std::vector<StepSearch> searches;
  for (int64_t p = 0; p < beta.size(0); ++p)
    searches.emplace_back(start.data_ptr<double>()[p], above_beta.data_ptr<double>()[p],
                          goal.data_ptr<double>()[p], above_farthest.data_ptr<double>()[p]);
  const auto all = [&](auto&& number) {
    at::Tensor list = at::empty_like(start);
    std::transform(searches.begin(), searches.end(), list.data_ptr<double>(), number);
    return list;
  };
  const auto is_done = [](const StepSearch& search) { return search.has_arrived(); };
  for (int i = 0; i < kMostEvaluations; ++i) {
    if (std::all_of(searches.begin(), searches.end(), is_done)) break;
    const at::Tensor x = all([](const StepSearch& search) { return search.next(); });
    const at::Tensor excess = above(x.to(beta.device()));
    for (size_t p = 0; p < searches.size(); ++p)
      searches[p].add(x.data_ptr<double>()[p], excess.data_ptr<double>()[p]);
  }
  return all([](const StepSearch& search) { return search.end(); }).to(beta.device());
}

}  // namespace crais
