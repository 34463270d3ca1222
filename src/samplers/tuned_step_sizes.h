// Step sizes that a pilot finds on its way.
#pragma once

#include <vector>

#include "samplers/anneal.h"

namespace crais {

/// The same step size for every move.
class ConstantStepSize : public StepSizes {
 public:
  explicit ConstantStepSize(double value);
  at::Tensor at(int64_t /*index*/) const override { return value_; }

 private:
  at::Tensor value_;
};

/// Follows the acceptance from one temperature to the next (Robbins-Monro), and remembers, for each
/// temperature, the step size that its own acceptance calls for.
class TunedStepSizes : public StepSizes {
 public:
  /// @param like  [P]: one step size for each problem, or the same for all (`shared`).
  TunedStepSizes(double initial, double target_acceptance, bool shared, const at::Tensor& like);

  at::Tensor at(int64_t /*index*/) const override { return log_step_.exp(); }
  void observe(int64_t index, const at::Tensor& accept_prob) override;

  at::Tensor tuned() const { return at::stack(tuned_).exp(); }

 private:
  double target_;
  bool shared_;
  at::Tensor log_step_;  // [P]
  std::vector<at::Tensor> tuned_;
};

}  // namespace crais
