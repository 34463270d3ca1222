// The step sizes of a pilot.
#pragma once

#include <vector>

#include "samplers/plan.h"

namespace crais {

/// Step sizes that are fixed if the options say so. Else they follow the acceptance from one
/// temperature to the next (Robbins-Monro), and the object records for each temperature the step
/// size that its own acceptance calls for.
class PilotStepSizes : public StepSizes {
 public:
  /// @param like  [P]: one step size for each problem, or one for all problems (options.shared).
  PilotStepSizes(const PilotOptions& options, const Transition& transition, const at::Tensor& like);

  at::Tensor at(int64_t /*index*/) const override {
    return fixed_.defined() ? fixed_ : log_step_.exp();
  }
  void observe(int64_t index, const at::Tensor& accept_prob) override;

  /// The recorded step sizes, [T,P]. Requires step sizes that are not fixed.
  at::Tensor tuned() const { return at::stack(tuned_).exp(); }

 private:
  double target_;  // target acceptance
  bool shared_;
  at::Tensor fixed_;     // [1], or undefined
  at::Tensor log_step_;  // [P]
  std::vector<at::Tensor> tuned_;
};

}  // namespace crais
