// The largest step that keeps the ESS of the weights above R times what it is now
//                                                          [Del Moral, Doucet & Jasra 2012]
#include "core/log_math.h"
#include "schedules/adaptive.h"

namespace crais {
namespace {

class EssSchedule : public AdaptiveSchedule {
 public:
  EssSchedule(double ratio, const ScheduleOptions& options)
      : AdaptiveSchedule(options), ratio_(ratio) {}

 protected:
  at::Tensor propose(const Progress& progress, const Path& path) const override {
    const auto log_density = [&](const at::Tensor& beta) {
      const Particles& particles = progress.particles;
      return path.at(beta.unsqueeze(1), particles.log_q0, particles.log_gamma).log_density;
    };
    const at::Tensor here = progress.log_w - log_density(progress.beta);
    const at::Tensor bound = ratio_ * progress.pool(ess(progress.log_w));
    return largest_step(progress.beta, options().max_step, bound, [&](const at::Tensor& beta) {
      return progress.pool(ess(here + log_density(beta)));
    });
  }
  std::string name() const override { return "ess"; }

 private:
  double ratio_;
};

const Enrol<ScheduleRegistry> kEnrol(
    "ess", {"ess:R", "keeps the effective sample size above R times its present value", "ess:0.9",
            [](Spec& spec, const ScheduleOptions& options) {
              return std::make_unique<EssSchedule>(spec.number("ratio", 0.001, 0.9999), options);
            }});

}  // namespace
}  // namespace crais
