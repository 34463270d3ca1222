#include "samplers/pilot_step_sizes.h"

#include <cmath>

namespace crais {
namespace {

// Near d log(step) / d(acceptance): the error at one temperature is corrected at the next.
constexpr double kGain = 1.0;
constexpr double kWidest = 14.0;  // step sizes from 1e-6 to 1e6

}  // namespace

PilotStepSizes::PilotStepSizes(const PilotOptions& options, const Transition& transition,
                               const at::Tensor& like)
    : target_(options.target_acceptance > 0 ? options.target_acceptance
                                            : transition.target_acceptance()),
      shared_(options.shared),
      log_step_(at::full_like(like, std::log(options.initial_step_size))) {
  if (options.step_size) fixed_ = at::full({1}, *options.step_size, at::kDouble);
}

void PilotStepSizes::observe(int64_t /*index*/, const at::Tensor& accept_prob) {
  if (fixed_.defined()) return;
  const at::Tensor pooled = shared_ ? accept_prob.mean().expand_as(accept_prob) : accept_prob;
  log_step_ = (log_step_ + kGain * (pooled - target_)).clamp(-kWidest, kWidest);
  tuned_.push_back(log_step_);
}

}  // namespace crais
