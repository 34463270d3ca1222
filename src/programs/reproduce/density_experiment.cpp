#include "programs/reproduce/density_experiment.h"

#include <utility>

#include "io/json.h"
#include "programs/estimate_logz/settings.h"

namespace crais {

using nlohmann::json;

DensityExperiment::DensityExperiment(const ExperimentOptions& options, std::string target,
                                     int64_t replicates)
    : Subject(options),
      name_(std::move(target)),
      replicates_(replicates),
      target_(make(at::kDouble)) {}

std::shared_ptr<const Target> DensityExperiment::make(at::ScalarType dtype) const {
  return TargetRegistry::instance().make(
      "target", name_,
      {replicates_, at::TensorOptions().device(options().device).dtype(dtype), options().data_dir});
}

double DensityExperiment::truth() const {
  const auto truth = target_->true_log_normalizer();
  return truth ? (*truth)[0].item<double>() : NAN;
}

Task DensityExperiment::task_with(const std::string& flags, uint64_t seed, const json& key,
                                  const std::function<void(const RunResults&, json&)>& add) const {
  const auto has = [&](const char* flag) { return flags.find(flag) != std::string::npos; };
  const std::string all = (has("--method") ? "" : "--witness none ") + flags +
                          (has("--base") ? "" : " --base prior") + " --problems " +
                          std::to_string(replicates_);
  const LogzSettings settings =
      read_logz_settings(CommandLine(estimate_logz_synopsis(), arguments_of(name_, all, seed)));
  const auto target = settings.dtype == at::kDouble ? target_ : make(settings.dtype);
  json whole = key;
  whole["target"] = name_;
  whole["log_density"] = json_number(probe(*target->slice(0, 1)));
  whole["settings"] = deciding_settings(settings);
  EstimateOptions estimate = settings.estimator;
  estimate.keep_particles = add != nullptr;
  return {whole, [estimate, problems = ProblemSource::of(target), add] {
            return estimate_cell(estimate, problems, add);
          }};
}

Task DensityExperiment::task(const std::string& flags, uint64_t seed, bool /*for_plans*/) const {
  return task_with(flags, seed);
}

}  // namespace crais
