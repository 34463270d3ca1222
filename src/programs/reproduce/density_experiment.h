// The common parts of experiments with named targets.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/target.h"
#include "programs/reproduce/variant.h"

namespace crais {

/// Replicates of a named target, with variants given as flags of estimate-logz. `estimate-logz
/// TARGET FLAGS --problems REPLICATES --seed SEED` repeats the result of a row, with `--witness
/// none` for AIS and `--base prior` if no base is named.
class DensityExperiment : public Subject {
 public:
  DensityExperiment(const ExperimentOptions& options, std::string target, int64_t replicates);

  /// log Z of one replicate, nats; NaN if it is not known.
  double truth() const;
  const Target& target() const { return *target_; }

  /// A task whose key includes `key`. `add`, if given, receives the particles.
  Task task_with(const std::string& flags, uint64_t seed, const nlohmann::json& key = {},
                 const std::function<void(const RunResults&, nlohmann::json&)>& add = {}) const;

 private:
  std::shared_ptr<const Target> make(at::ScalarType dtype) const;
  Task task(const std::string& flags, uint64_t seed, bool for_plans) const override;

  std::string name_;
  int64_t replicates_;
  std::shared_ptr<const Target> target_;
};

}  // namespace crais
