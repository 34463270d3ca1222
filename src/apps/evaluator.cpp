#include "apps/evaluator.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "core/error.h"
#include "core/rng.h"

namespace crais {
namespace {

constexpr uint64_t kSharedPilot = std::numeric_limits<uint64_t>::max();  // no chunk has this number

std::vector<double> to_vector(const at::Tensor& values) {
  if (!values.defined()) return {};
  const at::Tensor plain = values.to(at::kCPU, at::kDouble).contiguous();
  return {plain.data_ptr<double>(), plain.data_ptr<double>() + plain.numel()};
}

/// "prior", or "encoder[:W]" as its widening.
std::optional<double> parse_base(const std::string& text) {
  Spec spec(text);
  std::optional<double> widening;
  if (spec.name() == "encoder")
    widening = spec.number("widening", 0.1, 10.0, 1.0);
  else if (spec.name() != "prior")
    throw usage_error("unknown base '" + text + "'; choose from prior, encoder[:W]");
  spec.finish();
  return widening;
}

}  // namespace

Evaluator::Evaluator(const Vae& vae, const EstimatorSettings& settings)
    : vae_(vae),
      fused_(make_fused_decoder(vae)),
      settings_(settings),
      encoder_widening_(parse_base(settings.base)),
      path_(PathRegistry::instance().make("path", settings.path)),
      rule_(ScheduleRegistry::instance().make("schedule", settings.schedule,
                                              settings.schedule_options)),
      transition_(TransitionRegistry::instance().make("kernel", settings.kernel,
                                                      settings.transition_options)) {
  for (const auto& method : settings_.methods) {
    if (std::count(settings_.methods.begin(), settings_.methods.end(), method) > 1)
      throw usage_error("--method " + method + " is given twice; use --repeats");
    methods_.push_back(MethodRegistry::instance().make(
        "method", method, AnnealingParts{*path_, *transition_, settings_.chains}));
  }
}

bool Evaluator::anneals() const {
  return std::any_of(methods_.begin(), methods_.end(),
                     [](const auto& method) { return method->anneals(); });
}

bool Evaluator::needs_pilot() const { return crais::needs_pilot(*rule_, settings_.pilot); }

AffineMap Evaluator::base_of(const at::Tensor& images) const {
  return encoder_widening_ ? encoder_base(vae_, images, *encoder_widening_)
                           : prior_base(vae_, images.size(0));
}

Plan Evaluator::tune_on(const Problem& problem, uint64_t stream) const {
  if (!needs_pilot()) return freeze(*rule_, *settings_.pilot.step_size);
  at::Generator rng = make_generator(derive_seed(settings_.seed, Purpose::kPilot, stream),
                                     problem.base().options().device());
  return tune(problem, *path_, *rule_, *transition_, settings_.pilot, rng);
}

Problem Evaluator::centred(const Target& target, const AffineMap& base, uint64_t stream,
                           Cost& tuning) const {
  if (!anneals() || path_->order() == 0) return {target, base};
  constexpr int64_t kSteps = 64;
  at::Generator rng = make_generator(derive_seed(settings_.seed, Purpose::kCentre, stream),
                                     base.options().device());
  const Problem plain(target, base);
  const at::Tensor log_center =
      pilot_log_normalizer(plain, *transition_, kSteps, settings_.pilot, rng);
  tuning += plain.cost();
  return {target, base, log_center};
}

Cost Evaluator::tune_shared(const at::Tensor& images) {
  const VaePosterior target(vae_, images, fused_);
  Cost tuning;
  if (!needs_pilot()) {
    shared_plan_ = freeze(*rule_, *settings_.pilot.step_size);
    return tuning;
  }
  const Problem problem = centred(target, base_of(images), kSharedPilot, tuning);
  shared_plan_ = tune_on(problem, kSharedPilot);
  return tuning += problem.cost();
}

ChunkResult Evaluator::evaluate(int64_t chunk, const at::Tensor& images) const {
  using Clock = std::chrono::steady_clock;
  const VaePosterior target(vae_, images, fused_);
  const auto chunk_stream = static_cast<uint64_t>(chunk);
  ChunkResult result;
  result.chunk = chunk;
  const Problem pilot = centred(target, base_of(images), chunk_stream, result.tuning);
  if (anneals() && !has_shared_plan()) {
    result.plan = tune_on(pilot, chunk_stream);
    result.tuning += pilot.cost();
  }
  const Plan& plan = result.plan ? *result.plan : shared_plan_ ? *shared_plan_ : Plan{};
  for (int64_t repeat = 0; repeat < settings_.repeats; ++repeat) {
    for (size_t m = 0; m < methods_.size(); ++m) {
      const Problem problem(target, pilot.base(), pilot.log_center());
      const uint64_t stream = derive_seed(settings_.seed, Purpose::kEstimate, chunk_stream);
      at::Generator rng =
          make_generator(mix64(mix64(stream ^ static_cast<uint64_t>(repeat)) ^ m), images.device());
      const auto start = Clock::now();
      const MethodResult found = methods_[m]->estimate(problem, plan, rng);
      result.runs.push_back({settings_.methods[m], repeat, to_vector(found.estimate.value),
                             to_vector(found.estimate.std_error), to_vector(found.estimate.ess),
                             to_vector(found.accept_prob), found.num_nonfinite, problem.cost(),
                             std::chrono::duration<double>(Clock::now() - start).count()});
    }
  }
  return result;
}

}  // namespace crais
