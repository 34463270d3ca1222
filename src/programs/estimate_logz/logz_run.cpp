#include "programs/estimate_logz/logz_run.h"

#include <optional>
#include <utility>

#include "core/rng.h"
#include "evidence/evidence.h"
#include "io/json.h"
#include "programs/estimate_logz/report.h"
#include "programs/run_program.h"
#include "samplers/resampling.h"
#include "util/error.h"

namespace crais {
namespace {

using nlohmann::json;

void require_exact_draws(const Target& target, const LogzSettings& settings) {
  at::Generator rng = make_generator(0, settings.device);
  if (!target.slice(0, 1)->exact_sample(1, rng))
    throw argument_error(
        "--method bidirectional: its reverse chains start from exact draws of the target, and "
        "there is no way to draw from ",
        settings.target);
}

/// The settings that determine the results. A value of the density represents the files that the
/// target has read.
json run_record(const LogzSettings& settings, const Target& target) {
  json record = {{"program", "estimate-logz"},
                 {"target", settings.target},
                 {"dim", target.dim()},
                 {"log_density", json_number(probe(*target.slice(0, 1)))},
                 {"settings", deciding_settings(settings)}};
  if (!settings.identity.empty()) record["function"] = settings.identity;
  return record;
}

/// Keeps particles, if methods and options allow it, for callers that ask for samples and for the
/// page of a run with a folder, which draws particles in the plane.
void keep_particles(LogzSettings& settings, const Target& target) {
  constexpr double kMostBytes = 1 << 28, kLeastCost = 32;  // bytes; evaluations of a particle
  EstimateOptions& o = settings.estimator;
  const double particles = o.budget ? *o.budget / kLeastCost : static_cast<double>(o.chains);
  const double bytes = 8 * particles * static_cast<double>(settings.problems * (target.dim() + 1));
  const bool are_wanted = settings.wants_samples || (target.dim() == 2 && !settings.out.empty());
  if (are_wanted && bytes <= kMostBytes && o.methods == std::vector<std::string>{"ais"})
    o.keep_particles = true;
}

/// Some particles of all problems together, whose weights all have the mean Z. Nothing if a chunk
/// was read from a file, which keeps no particles.
std::optional<json> cloud_of(const LogzSettings& settings, const RunResults& results,
                             const Target& target) {
  constexpr int64_t kDrawn = 500;
  const auto kept = target.dim() == 2 ? kept_particles(results) : std::nullopt;
  if (!kept) return {};
  const at::Tensor drawn =
      thinned(kept->z.flatten(0, 1), kept->log_w.flatten(), kDrawn, settings.estimator.seed);
  if (!drawn.isfinite().all().item<bool>()) return {};
  json points = json::array();
  for (int64_t i = 0; i < kDrawn; ++i)
    points.push_back({drawn[i][0].item<double>(), drawn[i][1].item<double>()});
  return points;
}

}  // namespace

std::shared_ptr<const Target> named_target(const LogzSettings& settings) {
  if (settings.target.find(".py:") != std::string::npos)
    throw argument_error(settings.target,
                         ": only the command of the Python package runs a function of Python; `pip "
                         "install .` installs it");
  return TargetRegistry::instance().make(
      "target", settings.target,
      {settings.problems, at::TensorOptions().device(settings.device).dtype(settings.dtype),
       settings.data_dir});
}

RunReport run_logz(LogzSettings settings, const std::shared_ptr<const Target>& target,
                   RunObserver& observer) {
  keep_particles(settings, *target);
  const Estimator estimator(settings.estimator, evidence_driver());
  if (estimator.has_upper()) require_exact_draws(*target, settings);
  check_expectations(settings.estimator.expectations, *target);
  return run_in_folder(settings, run_record(settings, *target), ProblemSource::of(target),
                       estimator, {}, observer, [&](RunResults finished, json summary) {
                         LogzResults results{std::move(finished),
                                             settings.target,
                                             target->dim(),
                                             {},
                                             {},
                                             settings.notes,
                                             settings.doubts,
                                             settings.is_single || settings.dtype == at::kFloat};
                         if (const auto truth = target->true_log_normalizer())
                           results.truth = (*truth)[0].item<double>();
                         results.cloud = cloud_of(settings, results, *target);
                         const std::vector<TargetExpectation> expectations =
                             expectations_of(results, settings.estimator.expectations, *target);
                         return report_of(std::move(results), expectations, std::move(summary));
                       });
}

at::Tensor thinned(const at::Tensor& z, const at::Tensor& log_w, int64_t count, uint64_t seed) {
  at::Generator rng = make_generator(derive_seed(seed, Purpose::kResample));
  const at::Tensor index = ResamplingRegistry::instance()
                               .make("resampling", "systematic")
                               ->ancestors(log_w.unsqueeze(0), rng)
                               .squeeze(0);
  const at::Tensor positions =
      at::linspace(0, static_cast<double>(index.size(0) - 1), count, at::kDouble).round();
  return z.to(at::kDouble).index_select(0, index.index_select(0, positions.to(at::kLong)));
}

}  // namespace crais
