// The largest step whose increment has conditional ESS R                [Zhou, Johansen & Aston
// 2016]
#include "core/log_math.h"
#include "schedules/adaptive.h"

namespace crais {
namespace {

class CessSchedule : public SearchedSchedule {
 public:
  using SearchedSchedule::SearchedSchedule;

 protected:
  at::Tensor weights(const Progress& progress) const override {
    return statistic_weights(progress);
  }
  at::Tensor fraction(const at::Tensor& log_w, const at::Tensor& increment) const override {
    return cess_normalised(log_w, increment);
  }
  std::string name() const override { return "cess"; }
};

const Enrol<ScheduleRegistry> kEnrolCess(
    "cess", {"cess:R", "keeps the conditional effective sample size of each step at R", "cess:0.7",
             [](Spec& spec, const ScheduleOptions& options) {
               return std::make_unique<CessSchedule>(spec.number("ratio", 0.001, 0.9999), options);
             }});

}  // namespace
}  // namespace crais
