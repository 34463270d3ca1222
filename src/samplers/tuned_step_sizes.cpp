#include "samplers/tuned_step_sizes.h"

#include <cmath>

namespace crais {
namespace {

// Near d log(step) / d(acceptance), so that one temperature's error is mended at the next.
constexpr double kGain = 1.0;
constexpr double kWidest = 14.0;  // step sizes from 1e-6 to 1e6

}  // namespace

ConstantStepSize::ConstantStepSize(double value) : value_(at::full({1}, value, at::kDouble)) {}

TunedStepSizes::TunedStepSizes(double initial, double target_acceptance, bool shared,
                               const at::Tensor& like)
    : target_(target_acceptance),
      shared_(shared),
      log_step_(at::full_like(like, std::log(initial))) {}

void TunedStepSizes::observe(int64_t /*index*/, const at::Tensor& accept_prob) {
  const at::Tensor pooled = shared_ ? accept_prob.mean().expand_as(accept_prob) : accept_prob;
  log_step_ = (log_step_ + kGain * (pooled - target_)).clamp(-kWidest, kWidest);
  tuned_.push_back(log_step_);
}

}  // namespace crais
