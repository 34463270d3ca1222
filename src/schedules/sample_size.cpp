// The largest step that keeps a share of the effective sample size: of the weights [Del Moral,
// Doucet & Jasra 2012] or, conditionally, of the step's increments under the weights before the
// step [Zhou, Johansen & Aston 2016]. A search on cached densities: no target evaluations.
#include <string>

#include "core/log_math.h"
#include "schedules/adaptive.h"

namespace crais {
namespace {

class SampleSize : public AdaptiveSchedule {
 public:
  SampleSize(bool is_conditional, double ratio, const ScheduleOptions& options)
      : AdaptiveSchedule(options), is_conditional_(is_conditional), ratio_(ratio) {}

 protected:
  at::Tensor propose(const Progress& progress, const Path& path) const override {
    const auto log_density = [&](const at::Tensor& beta) {
      return annealed_log_density(path, beta, progress.particles);
    };
    const at::Tensor current = log_density(progress.beta);
    const at::Tensor log_w = is_conditional_ ? statistic_weights(progress) : progress.log_w;
    const auto left = [&](const at::Tensor& increment) {
      return progress.pool(is_conditional_ ? cess_normalised(log_w, increment)
                                           : ess(log_w + increment));
    };
    return largest_step(progress.beta, options().max_step, ratio_ * left(at::zeros_like(current)),
                        [&](const at::Tensor& beta) { return left(log_density(beta) - current); });
  }
  std::string name() const override { return is_conditional_ ? "cess" : "ess"; }

 private:
  bool is_conditional_;
  double ratio_;
};

ScheduleRegistry::Factory keeping(bool is_conditional) {
  return [=](Spec& spec, const ScheduleOptions& options) {
    return std::make_unique<SampleSize>(is_conditional, spec.number("ratio", 0.001, 0.9999),
                                        options);
  };
}

const Enrol<ScheduleRegistry> kEnrolEss(
    "ess:R", "keeps the effective sample size above R times its present value", "ess:0.9",
    keeping(false));
const Enrol<ScheduleRegistry> kEnrolCess(
    "cess:R", "keeps the conditional effective sample size of each step at R", "cess:0.7",
    keeping(true));

}  // namespace
}  // namespace crais
