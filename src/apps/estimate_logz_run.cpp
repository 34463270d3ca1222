#include "apps/estimate_logz_run.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "core/error.h"
#include "core/format.h"
#include "core/interrupt.h"
#include "core/parallel.h"
#include "core/rng.h"

namespace crais {
namespace {

constexpr uint64_t kSharedPilot = std::numeric_limits<uint64_t>::max();  // no chunk has this number

/// Writes [P] values to their place among all problems.
void place(const at::Tensor& values, size_t begin, std::vector<double>& all) {
  const at::Tensor plain = values.to(at::kCPU, at::kDouble).contiguous();
  std::copy_n(plain.data_ptr<double>(), plain.numel(),
              all.begin() + static_cast<std::ptrdiff_t>(begin));
}

}  // namespace

LogzRun::LogzRun(const LogzSettings& settings)
    : settings_(settings),
      path_(PathRegistry::instance().make("path", settings.estimator.path)),
      rule_(ScheduleRegistry::instance().make("schedule", settings.estimator.schedule,
                                              settings.estimator.schedule_options)),
      transition_(TransitionRegistry::instance().make("kernel", settings.estimator.kernel,
                                                      settings.estimator.transition_options)) {
  const EstimatorSettings& e = settings_.estimator;
  for (const auto& method : e.methods) {
    if (std::count(e.methods.begin(), e.methods.end(), method) > 1)
      throw usage_error("--method " + method + " is given twice; use --repeats");
    methods_.push_back(MethodRegistry::instance().make(
        "method", method, AnnealingParts{*path_, *transition_, e.chains}));
  }
  settings_.chunk = std::min(settings_.chunk, settings_.problems);
  whole_ = make_target(settings_.chunk);
  if (const int64_t last = chunk_size(num_chunks() - 1); last < settings_.chunk)
    rest_ = make_target(last);
  results_.dim = whole_->dim();
  if (const auto truth = whole_->true_log_normalizer()) results_.truth = (*truth)[0].item<double>();
}

int64_t LogzRun::chunk_size(int64_t chunk) const {
  return std::min(settings_.chunk, settings_.problems - chunk * settings_.chunk);
}

bool LogzRun::anneals() const {
  return std::any_of(methods_.begin(), methods_.end(),
                     [](const auto& method) { return method->anneals(); });
}

std::unique_ptr<Target> LogzRun::make_target(int64_t num_problems) const {
  const auto tensors = at::TensorOptions().device(settings_.device).dtype(settings_.dtype);
  return TargetRegistry::instance().make("target", settings_.target,
                                         {num_problems, tensors, settings_.data_dir});
}

Problem LogzRun::problem_of(const Target& target, uint64_t stream, Cost& tuning) const {
  const auto tensors = at::TensorOptions().device(settings_.device).dtype(settings_.dtype);
  const AffineMap base = AffineMap::identity(target.num_problems(), target.dim(), tensors);
  if (!anneals() || path_->order() == 0) return {target, base};
  constexpr int64_t kSteps = 64;
  at::Generator rng = make_generator(
      derive_seed(settings_.estimator.seed, Purpose::kCentre, stream), settings_.device);
  const Problem plain(target, base);
  const at::Tensor log_center =
      pilot_log_normalizer(plain, *transition_, kSteps, settings_.estimator.pilot, rng);
  tuning += plain.cost();
  return {target, base, log_center};
}

Plan LogzRun::tune_on(const Problem& problem, uint64_t stream, Cost& tuning) const {
  const PilotOptions& pilot = settings_.estimator.pilot;
  if (!needs_pilot(*rule_, pilot)) return freeze(*rule_, *pilot.step_size);
  at::Generator rng = make_generator(derive_seed(settings_.estimator.seed, Purpose::kPilot, stream),
                                     settings_.device);
  const Plan plan = tune(problem, *path_, *rule_, *transition_, pilot, rng);
  tuning += problem.cost();
  return plan;
}

void LogzRun::tune_shared() {
  const int64_t count = std::min(settings_.estimator.pilot_problems, settings_.chunk);
  const std::unique_ptr<Target> target = make_target(count);
  if (!needs_pilot(*rule_, settings_.estimator.pilot)) {
    results_.shared_plan = freeze(*rule_, *settings_.estimator.pilot.step_size);
    return;
  }
  const Problem problem = problem_of(*target, kSharedPilot, results_.tuning);
  results_.shared_plan = tune_on(problem, kSharedPilot, results_.tuning);
}

void LogzRun::estimate(int64_t chunk, ProgressBar& progress) {
  using Clock = std::chrono::steady_clock;
  const c10::NoGradGuard no_grad;
  const EstimatorSettings& e = settings_.estimator;
  const Target& target = chunk_size(chunk) < settings_.chunk ? *rest_ : *whole_;
  const auto stream = static_cast<uint64_t>(chunk);
  Cost tuning;
  const Problem pilot = problem_of(target, stream, tuning);
  Plan own;
  if (anneals() && !results_.shared_plan) own = tune_on(pilot, stream, tuning);
  const Plan& plan = results_.shared_plan ? *results_.shared_plan : own;
  {
    const std::lock_guard lock(results_mutex_);
    results_.tuning += tuning;
    if (own.betas.defined()) results_.plans[static_cast<size_t>(chunk)] = own;
  }
  for (int64_t repeat = 0; repeat < e.repeats; ++repeat) {
    for (size_t m = 0; m < methods_.size() && !interrupted(); ++m) {
      const Problem problem(target, pilot.base(), pilot.log_center());
      const uint64_t seed = derive_seed(e.seed, Purpose::kEstimate, stream);
      at::Generator rng =
          make_generator(mix64(mix64(seed ^ static_cast<uint64_t>(repeat)) ^ m), settings_.device);
      const auto start = Clock::now();
      const MethodResult found = methods_[m]->estimate(problem, plan, rng);
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();

      const std::lock_guard lock(results_mutex_);
      LogzResult& result = results_.methods[m];
      const auto begin = static_cast<size_t>(repeat * settings_.problems + chunk * settings_.chunk);
      place(found.estimate.value, begin, result.log_normalizer);
      place(found.estimate.std_error, begin, result.std_error);
      place(found.estimate.ess, begin, result.ess);
      if (found.accept_prob.defined()) {
        result.accept_prob.resize(result.ess.size());
        place(found.accept_prob, begin, result.accept_prob);
      }
      result.num_nonfinite += found.num_nonfinite;
      result.cost += problem.cost();
      result.seconds += seconds;
      progress.advance(target.num_problems());
      progress.set_status("log Z " + fixed(found.estimate.value.mean().item<double>(), 3) +
                          "  ESS " + fixed(found.estimate.ess.mean().item<double>(), 2));
    }
  }
}

LogzResults LogzRun::run() {
  const EstimatorSettings& e = settings_.estimator;
  const auto runs = static_cast<size_t>(settings_.problems * e.repeats);
  for (size_t m = 0; m < methods_.size(); ++m) {
    const std::vector<double> empty(runs);
    results_.methods.push_back(
        {e.methods[m], methods_[m]->bound(), empty, empty, empty, {}, 0, {}, 0});
  }
  if (anneals() && e.pilot.shared) tune_shared();
  if (anneals() && !e.pilot.shared) results_.plans.resize(static_cast<size_t>(num_chunks()));

  ProgressBarOptions options;
  options.label = "estimate-logz";
  options.unit = "estimates";
  options.total = static_cast<int64_t>(runs * methods_.size());
  options.enabled = !settings_.quiet;
  ProgressBar progress(options);
  parallel_for(
      num_chunks(), settings_.device.is_cpu() ? settings_.threads : 1,
      [&](int64_t chunk) { estimate(chunk, progress); }, interrupted);
  progress.finish();
  throw_if_interrupted("nothing is kept");
  return results_;
}

}  // namespace crais
