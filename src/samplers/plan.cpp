#include "samplers/plan.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "schedules/fixed.h"
#include "util/error.h"

namespace crais {
namespace {

class FrozenStepSizes : public StepSizes {
 public:
  explicit FrozenStepSizes(at::Tensor values) : values_(std::move(values)) {}
  at::Tensor at(int64_t index) const override { return values_[index]; }

 private:
  at::Tensor values_;  // [T,C]
};

double lerp(double a, double b, double t) { return a + t * (b - a); }

/// Column `c` of a plan as plain numbers, without the padding of short columns at beta = 1.
struct Column {
  std::vector<double> betas, step_sizes, divergence, accept_prob, ess;

  Column(const Plan& plan, int64_t c) {
    const at::Tensor beta = plan.betas.select(1, c).contiguous();
    const at::Tensor step = plan.step_sizes.select(1, c).contiguous();
    betas.push_back(0.0);
    while (betas.back() < 1.0) {
      const auto i = static_cast<int64_t>(betas.size());
      betas.push_back(beta[i].item<double>());
      step_sizes.push_back(step[i - 1].item<double>());
    }
    divergence = seen(plan.divergence, c, betas.size());
    accept_prob = seen(plan.accept_prob, c, step_sizes.size());
    ess = seen(plan.ess, c, betas.size());
  }

  /// The first `count` observations of a pilot; empty without a pilot.
  static std::vector<double> seen(const at::Tensor& values, int64_t c, size_t count) {
    if (!values.defined()) return {};
    const at::Tensor column = values.select(1, c).contiguous();
    const auto* const first = column.data_ptr<double>();
    return {first, first + count};
  }

  /// Interpolates `values` at the ends of steps, at a fraction of all steps from the start.
  static double at_fraction(const std::vector<double>& values, double fraction) {
    if (values.size() == 1) return values.front();
    const double place = fraction * static_cast<double>(values.size() - 1);
    const auto i = std::min(static_cast<size_t>(place), values.size() - 2);
    return lerp(values[i], values[i + 1], place - static_cast<double>(i));
  }

  double step_size_at(double beta) const {
    // step_sizes[i] belongs to betas[i + 1].
    const auto above = std::lower_bound(betas.begin() + 1, betas.end() - 1, beta);
    const auto i = static_cast<size_t>(above - betas.begin()) - 1;
    if (i == 0 || beta >= *above) return step_sizes[i];
    const double t = (beta - betas[i]) / (betas[i + 1] - betas[i]);
    return std::exp(lerp(std::log(step_sizes[i - 1]), std::log(step_sizes[i]), t));
  }
};

}  // namespace

Plan Plan::without_moves(int64_t columns, int64_t num_particles) {
  return {at::tensor({0.0, 1.0}, at::kDouble).unsqueeze(1).expand({2, columns}).contiguous(),
          at::zeros({1, columns}, at::kDouble), num_particles};
}

Plan freeze(const ScheduleRule& rule, double step_size) {
  TORCH_CHECK(!rule.is_adaptive(), "freeze: an adaptive schedule needs a pilot");
  const at::Tensor betas = rule.betas();
  return {betas, at::full({betas.size(0) - 1, 1}, step_size, at::kDouble), 0};
}

Plan interpolate(const Plan& plan, int64_t steps) {
  TORCH_CHECK(steps >= 1, "interpolate: at least one step");
  const int64_t columns = plan.betas.size(1);
  Plan stretched{at::zeros({steps + 1, columns}, at::kDouble),
                 at::zeros({steps, columns}, at::kDouble), plan.num_particles};
  stretched.path = plan.path;
  auto betas = stretched.betas.accessor<double, 2>();
  auto step_sizes = stretched.step_sizes.accessor<double, 2>();
  const auto fraction = [&](int64_t i) {
    return static_cast<double>(i) / static_cast<double>(steps);
  };
  // Row r of observations is of the step `first` + r.
  const auto stretch = [&](at::Tensor& to, int64_t c, const std::vector<double>& seen,
                           int64_t first) {
    if (seen.empty()) return;
    if (!to.defined()) to = at::zeros({steps + 1 - first, columns}, at::kDouble);
    auto values = to.accessor<double, 2>();
    for (int64_t i = first; i <= steps; ++i)
      values[i - first][c] = Column::at_fraction(seen, fraction(i));
  };
  for (int64_t c = 0; c < columns; ++c) {
    const Column column(plan, c);
    stretch(stretched.divergence, c, column.divergence, 0);
    stretch(stretched.ess, c, column.ess, 0);
    stretch(stretched.accept_prob, c, column.accept_prob, 1);
    for (int64_t i = 1; i <= steps; ++i) {
      betas[i][c] = i == steps ? 1.0 : Column::at_fraction(column.betas, fraction(i));
      step_sizes[i - 1][c] = column.step_size_at(betas[i][c]);
    }
  }
  return stretched;
}

Plan select(const Plan& plan, const at::Tensor& index) {
  if (plan.betas.size(1) == 1) return plan;  // shared
  const auto columns = [&](const at::Tensor& x) {
    return x.defined() ? x.index_select(1, index.to(x.device())) : x;
  };
  return {.betas = columns(plan.betas),
          .step_sizes = columns(plan.step_sizes),
          .num_particles = plan.num_particles,
          .divergence = columns(plan.divergence),
          .path = plan.path ? plan.path->select(index) : nullptr,
          .accept_prob = columns(plan.accept_prob),
          .ess = columns(plan.ess)};
}

AnnealResult anneal(const Problem& problem, const Path& path, const Plan& plan,
                    const Transition& transition, int64_t num_particles, at::Generator& rng,
                    const Resampling* resampling) {
  const at::Device device = problem.base().options().device();
  FrozenStepSizes step_sizes(plan.step_sizes.to(device));
  return anneal(problem, plan.path ? *plan.path : path, FixedSchedule(plan.betas.to(device)),
                transition, step_sizes,
                {.num_particles = num_particles,
                 .max_steps = plan.num_steps(),
                 .shared = plan.betas.size(1) == 1,
                 .resampling = resampling,
                 .record = false},
                rng);
}

AnnealResult anneal_reverse(const Problem& problem, const Path& path, const Plan& plan,
                            const Transition& transition, const at::Tensor& z, at::Generator& rng) {
  const at::Device device = problem.base().options().device();
  return anneal_reverse(problem, plan.path ? *plan.path : path, plan.betas.to(device), transition,
                        FrozenStepSizes(plan.step_sizes.to(device)), problem.base().to_e(z), rng);
}

AnnealResult anneal_reverse(const Problem& problem, const Path& path, const Plan& plan,
                            const Transition& transition, int64_t num_particles,
                            at::Generator& rng) {
  const auto z = problem.target().exact_sample(num_particles, rng);
  if (!z) throw argument_error("reverse chains start from exact draws, and this target has none");
  return anneal_reverse(problem, path, plan, transition, *z, rng);
}

}  // namespace crais
