#include "evidence/evidence.h"

#include <algorithm>

#include "evidence/rounds.h"

namespace crais {
namespace {

class EvidenceDriver : public Driver {
 public:
  std::unique_ptr<BaseRule> rule(const std::string& base) const override {
    return make_base(base, {.one_density = true});
  }

  bool shares_fit() const override { return true; }

  BaseChoice choose(const EstimatorParts& parts, const Target& pilots, int64_t num_problems,
                    std::optional<at::ScalarType> forces) const override {
    if (parts.num_anneals() == 0) return Driver::choose(parts, pilots, num_problems, forces);
    return {rule("mixture"), {}, {}};
  }

  bool plans_by_chunk(const EstimateOptions& options, const std::string& base) const override {
    return is_mixture(base) || options.error;
  }

  Plan plan(const EstimatorParts& parts, const std::string& base, const Problem& problem,
            ChunkResult& result, Rounds& rounds) const override {
    const auto stream = static_cast<uint64_t>(result.chunk);
    const Cost spent = result.base + result.tuning;
    if (parts.options.error) return plan_by_rounds(parts, problem, spent, stream, rounds);
    if (!is_mixture(base)) return Driver::plan(parts, base, problem, result, rounds);
    TunedPlan own = replicated_plan(parts, problem, spent, stream);
    result.tuning += own.cost;
    return std::move(own.plan);
  }

  void complete(const EstimatorParts& parts, const Target& target,
                TunedState& state) const override {
    const std::vector<std::string>& methods = parts.options.methods;
    if (parts.options.witness && !is_mixture(state.base) &&
        std::find(methods.begin(), methods.end(), "ais") != methods.end())
      state.witness = second_opinion(parts.options, target, state.tuning);
  }

  void check(const EstimatorParts& parts, const std::string& base, const Problem& problem,
             const Plan& plan, const WeightedParticles& found, ChunkResult& result) const override {
    if (parts.options.witness && is_mixture(base) && !result.settled &&
        needs_witness(plan.has_moves(), problem))
      result.settled = settled_share(parts, problem, plan, found,
                                     static_cast<uint64_t>(result.chunk), result.tuning);
  }
};

}  // namespace

std::shared_ptr<const Driver> evidence_driver() { return std::make_shared<EvidenceDriver>(); }

Result estimate_evidence(const Target& replicates, const EstimateOptions& options,
                         const LogNormalizerRun& run) {
  return estimate_log_normalizer(replicates, options, run, evidence_driver());
}

bool is_mixture(const std::string& base) { return base.rfind("mixture", 0) == 0; }

}  // namespace crais
