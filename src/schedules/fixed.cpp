// Schedules that are known before the run: heuristics, files and frozen plans.
#include "schedules/fixed.h"

#include <utility>
#include <vector>

#include "io/csv.h"
#include "util/error.h"

namespace crais {
namespace {

const Enrol<ScheduleRegistry> kEnrolFixed(
    "file",
    {"file:F", "betas from a file, one a line (or its column 'beta'), from 0 to 1", "",
     [](Spec& spec, const ScheduleOptions&) {
       const std::string path = spec.word("path");
       const std::vector<double> betas = read_csv(path).numbers("beta");
       try {
         return std::make_unique<FixedSchedule>(at::tensor(betas, at::kDouble).unsqueeze(1));
       } catch (const Error& error) {
         throw data_error(path, ": ", error.what());
       }
     }});

}  // namespace

FixedSchedule::FixedSchedule(at::Tensor betas) : betas_(std::move(betas)) {
  TORCH_CHECK(betas_.dim() == 2, "schedule: betas must be [T+1,P]");
  if (betas_.size(0) < 2) throw data_error("fewer than two betas are no schedule");
  const at::Tensor step = betas_.diff(1, 0);
  const at::Tensor previous = betas_.slice(0, 0, -1);
  if (!(betas_[0] == 0).all().item<bool>() || !(betas_[-1] == 1).all().item<bool>())
    throw data_error("a schedule must start at beta = 0 and end at 1");
  if (!((step > 0) | ((step == 0) & (previous == 1))).all().item<bool>())
    throw data_error("a schedule must rise at every step");
}

at::Tensor FixedSchedule::next(const Progress& progress, const Path&) const {
  return betas_[progress.index + 1].to(progress.beta.device()).expand_as(progress.beta);
}

std::unique_ptr<ScheduleRule> make_heuristic(int64_t steps,
                                             const std::function<double(double)>& shape) {
  at::Tensor betas = at::zeros({steps + 1, 1}, at::kDouble);
  auto* beta = betas.data_ptr<double>();
  for (int64_t i = 1; i < steps; ++i)
    beta[i] = shape(static_cast<double>(i) / static_cast<double>(steps));
  beta[steps] = 1.0;
  return std::make_unique<FixedSchedule>(betas);
}

}  // namespace crais
