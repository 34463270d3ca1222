// What experiments with named targets are made of.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/target.h"
#include "programs/reproduce/variant.h"

namespace crais {

/// Replicates of a named target, and variants that are flags of estimate-logz: what a row says can
/// be had again by `estimate-logz TARGET FLAGS --problems REPLICATES --seed SEED`, with `--witness
/// none` for AIS, and `--base prior` where no base is named.
class DensityExperiment : public Subject {
 public:
  DensityExperiment(const ExperimentOptions& options, std::string target, int64_t replicates);

  /// Of one replicate, nats; NaN where it is not known.
  double truth() const;
  const Target& target() const { return *target_; }

  /// `key` joins what decides the result; `add` sees the particles, if there is one.
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
