// What experiments with named targets are made of.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/target.h"
#include "programs/reproduce/experiment.h"
#include "programs/reproduce/variant.h"

namespace crais {

/// Flags of estimate-logz without a second opinion, and with the base prior where they name none.
std::string with_base(const std::string& flags);

/// Replicates of a named target, and variants that are flags of estimate-logz: what a row says can
/// be had again by `estimate-logz TARGET FLAGS --problems REPLICATES --seed SEED`.
class DensityExperiment {
 public:
  DensityExperiment(const ExperimentOptions& options, const std::string& target,
                    int64_t replicates);
  /// Of a target without a name in the library, made by `factory`; `target` stands for it.
  DensityExperiment(const ExperimentOptions& options, std::string target, int64_t replicates,
                    std::function<std::unique_ptr<Target>(const TargetOptions&)> factory);

  /// One task per variant and seed; seeds count from `first_seed`.
  std::vector<VariantResult> run(const std::string& label, const std::vector<Variant>& variants,
                                 int64_t seeds = 1, uint64_t first_seed = 0) const;

  /// What `flags` leave open with an `@`, chosen such that plans have `steps` transitions.
  MatchedPlans match(const std::string& flags, int64_t steps) const;

  int64_t dim() const { return target_->dim(); }
  /// nats, where it is known.
  std::optional<double> truth() const;

 private:
  std::shared_ptr<const Target> make(at::ScalarType dtype) const;
  Task task(const std::string& flags, uint64_t seed) const;

  ExperimentOptions options_;
  std::string name_;
  int64_t replicates_;
  std::function<std::unique_ptr<Target>(const TargetOptions&)> factory_;
  std::shared_ptr<const Target> target_;
};

/// The dimension of a table that the paper has for 128 and 512, such as "table-highdim:512"; 0
/// where it is left out. Throws Error kArgument for any other.
int64_t read_published_dim(Spec& spec);

/// Estimates [N] against the truth.
struct TargetErrors {
  double bias, std_error;  // of the mean estimate
  double absolute, root_mean_square;
  TargetErrors(const at::Tensor& estimates, double truth);
};

}  // namespace crais
