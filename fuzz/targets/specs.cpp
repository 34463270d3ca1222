// Names with parameters, as "laplace:1.1,rounds=20": those of every registry, and of every other
// place.
#include "bases/base.h"
#include "core/divergence.h"
#include "core/path.h"
#include "core/schedule.h"
#include "core/target.h"
#include "core/transition.h"
#include "data/binarisation.h"
#include "estimates/expectation.h"
#include "estimates/method.h"
#include "harness.h"
#include "models/objective.h"
#include "models/vae.h"
#include "samplers/resampling.h"

namespace crais::fuzz {
namespace {

template <typename R, typename... Args>
void make(const std::string& text, const Args&... args) {
  attempt([&] { R::instance().make("name", text, args...); });
}

}  // namespace

void read(std::string_view input) {
  const std::string text(input);
  if (text.rfind("file:", 0) == 0) return;  // the schedules' target has files of its own
  static const AnnealingParts kParts{PathRegistry::instance().make("path", "geometric"),
                                     TransitionRegistry::instance().make("kernel", "hmc", {}),
                                     {}};
  make<BaseRegistry>(text, BaseOptions{});
  make<DivergenceRegistry>(text);
  make<ExpectationRegistry>(text);
  make<MethodRegistry>(text, kParts);
  make<PathRegistry>(text);
  make<ResamplingRegistry>(text);
  make<ScheduleRegistry>(text, ScheduleOptions{});
  make<TargetRegistry>(text, TargetOptions{});
  make<TransitionRegistry>(text, TransitionOptions{});
  attempt([&] { to_string(parse_binarisation(text)); });
  attempt([&] { to_string(parse_objective(text)); });
  attempt([&] { to_string(parse_decay(text)); });
  attempt([&] { to_string(parse_likelihood(text)); });
  attempt([&] { parse_activation(text); });
}

}  // namespace crais::fuzz
