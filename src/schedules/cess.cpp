// The largest step whose increment has conditional ESS R                [Zhou, Johansen & Aston
// 2016]
#include "core/log_math.h"
#include "schedules/adaptive.h"

namespace crais {
namespace {

class CessSchedule : public AdaptiveSchedule {
 public:
  CessSchedule(double ratio, const ScheduleOptions& options)
      : AdaptiveSchedule(options), ratio_(ratio) {}

 protected:
  at::Tensor propose(const Progress& progress, const Path& path) const override {
    const auto log_density = [&](const at::Tensor& beta) {
      const Particles& particles = progress.particles;
      return path.at(beta.unsqueeze(1), particles.log_q0, particles.log_gamma).log_density;
    };
    const at::Tensor weights = statistic_weights(progress);
    const at::Tensor here = log_density(progress.beta);
    const at::Tensor bound = at::full_like(progress.beta, ratio_);
    return largest_step(progress.beta, options().max_step, bound, [&](const at::Tensor& beta) {
      return progress.pool(cess(weights, log_density(beta) - here));
    });
  }
  std::string name() const override { return "cess"; }

 private:
  double ratio_;
};

const Enrol<ScheduleRegistry> kEnrol(
    "cess", {"cess:R", "keeps the conditional effective sample size of each step at R", "cess:0.7",
             [](Spec& spec, const ScheduleOptions& options) {
               return std::make_unique<CessSchedule>(spec.number("ratio", 0.001, 0.9999), options);
             }});

}  // namespace
}  // namespace crais
