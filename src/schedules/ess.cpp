// The largest step that keeps the ESS of the weights above R times what it is now
//                                                          [Del Moral, Doucet & Jasra 2012]
#include "core/log_math.h"
#include "schedules/adaptive.h"

namespace crais {
namespace {

class EssSchedule : public SearchedSchedule {
 public:
  using SearchedSchedule::SearchedSchedule;

 protected:
  at::Tensor weights(const Progress& progress) const override { return progress.log_w; }
  at::Tensor fraction(const at::Tensor& log_w, const at::Tensor& increment) const override {
    return ess(log_w + increment);
  }
  std::string name() const override { return "ess"; }
};

const Enrol<ScheduleRegistry> kEnrolEss(
    "ess", {"ess:R", "keeps the effective sample size above R times its present value", "ess:0.9",
            [](Spec& spec, const ScheduleOptions& options) {
              return std::make_unique<EssSchedule>(spec.number("ratio", 0.001, 0.9999), options);
            }});

}  // namespace
}  // namespace crais
