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
  at::Tensor fraction(const Progress& progress, const at::Tensor& increment) const override {
    return cess(statistic_weights(progress), increment);
  }
  at::Tensor whole(const Progress& progress) const override { return at::ones_like(progress.beta); }
  std::string name() const override { return "cess"; }
};

const Enrol<ScheduleRegistry> kEnrol(
    "cess", {"cess:R", "keeps the conditional effective sample size of each step at R", "cess:0.7",
             [](Spec& spec, const ScheduleOptions& options) {
               return std::make_unique<CessSchedule>(spec.number("ratio", 0.001, 0.9999), options);
             }});

}  // namespace
}  // namespace crais
