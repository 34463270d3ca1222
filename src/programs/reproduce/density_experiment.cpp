#include "programs/reproduce/density_experiment.h"

#include <utility>

#include "io/json.h"
#include "programs/estimate_logz/settings.h"
#include "util/error.h"

namespace crais {

using nlohmann::json;

std::string with_base(const std::string& flags) {
  const auto has = [&](const char* flag) { return flags.find(flag) != std::string::npos; };
  const std::string witness = has("--method") ? "" : "--witness none ";
  return witness + (has("--base") ? "" : "--base prior ") + flags;
}

DensityExperiment::DensityExperiment(const ExperimentOptions& options, const std::string& target,
                                     int64_t replicates)
    : DensityExperiment(options, target, replicates, [target](const TargetOptions& target_options) {
        return TargetRegistry::instance().make("target", target, target_options);
      }) {}

DensityExperiment::DensityExperiment(
    const ExperimentOptions& options, std::string target, int64_t replicates,
    std::function<std::unique_ptr<Target>(const TargetOptions&)> factory)
    : options_(options),
      name_(std::move(target)),
      replicates_(replicates),
      factory_(std::move(factory)),
      target_(make(at::kDouble)) {}

std::shared_ptr<const Target> DensityExperiment::make(at::ScalarType dtype) const {
  return factory_(
      {replicates_, at::TensorOptions().device(options_.device).dtype(dtype), options_.data_dir});
}

std::optional<double> DensityExperiment::truth() const {
  const auto truth = target_->true_log_normalizer();
  if (!truth) return {};
  return (*truth)[0].item<double>();
}

Task DensityExperiment::task(const std::string& flags, uint64_t seed) const {
  const std::string all = with_base(flags) + " --problems " + std::to_string(replicates_);
  const LogzSettings settings =
      read_logz_settings(CommandLine(estimate_logz_synopsis(), arguments_of(name_, all, seed)));
  const auto target = settings.dtype == at::kDouble ? target_ : make(settings.dtype);
  const json key = {{"target", name_},
                    {"log_density", json_number(probe(*target->slice(0, 1)))},
                    {"settings", deciding_settings(settings)}};
  return {key, [options = settings.estimator, problems = ProblemSource::of(target)] {
            return estimate_cell(options, problems);
          }};
}

std::vector<VariantResult> DensityExperiment::run(const std::string& label,
                                                  const std::vector<Variant>& variants,
                                                  int64_t seeds, uint64_t first_seed) const {
  return run_variants(
      options_, label, variants, seeds, first_seed,
      [this](const std::string& flags, uint64_t seed) { return task(flags, seed); });
}

MatchedPlans DensityExperiment::match(const std::string& flags, int64_t steps) const {
  return match_variant(flags, steps, [&](const std::vector<Variant>& trials) {
    return run(name_ + ", plans of " + std::to_string(steps), trials);
  });
}

int64_t read_published_dim(Spec& spec) {
  const int64_t dim = spec.integer("dim", 0, 512, 0);
  if (dim != 0 && dim != 128 && dim != 512)
    throw argument_error("'" + spec.text() + "': the published dimensions are 128 and 512");
  return dim;
}

TargetErrors::TargetErrors(const at::Tensor& estimates, double truth) {
  const at::Tensor errors = estimates.flatten() - truth;
  const Spread spread(errors);
  bias = spread.mean;
  std_error = spread.std_error;
  absolute = errors.abs().mean().item<double>();
  root_mean_square = errors.square().mean().sqrt().item<double>();
}

}  // namespace crais
