/// @file
/// Schedules that are known before the run.
#pragma once

#include <functional>
#include <memory>

#include "core/schedule.h"

namespace crais {

/// Replays betas [T+1,P], or [T+1,1] if shared, from 0 to 1. Throws Error kData unless each column
/// starts at 0, ends at 1, and rises in between (it may rest only at 1).
///
///     crais::FixedSchedule rule(at::tensor({0.0, 0.1, 0.5, 1.0}, at::kDouble).unsqueeze(1));
class FixedSchedule : public ScheduleRule {
 public:
  explicit FixedSchedule(at::Tensor betas);

  at::Tensor next(const Progress& progress, const Path& path) const override;
  at::Tensor betas() const override { return betas_; }

 private:
  at::Tensor betas_;
};

/// The schedule beta_i = shape(i / T), i = 0..T, with its ends set to exactly 0 and 1.
std::unique_ptr<ScheduleRule> make_heuristic(int64_t steps,
                                             const std::function<double(double)>& shape);

}  // namespace crais
