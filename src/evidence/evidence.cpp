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

  /// Replicates of one chunk are pilots.
  bool plan(const EstimatorParts& parts, const Target& pilots, int64_t num_problems,
            TunedState& state) const override {
    const EstimateOptions& options = parts.options;
    if (options.witness && !is_mixture(state.base) &&
        std::find(options.methods.begin(), options.methods.end(), "ais") != options.methods.end())
      state.witness = second_opinion(options, pilots, state.tuning);
    if (parts.num_anneals() == 0 || !(options.error || options.budget || is_mixture(state.base)))
      return false;
    const auto few = pilots.slice(0, std::min(options.chunk, pilots.num_problems()));
    const CentredProblem centre = centred(parts, *few, fit_base(parts, state, *few, kSharedStream),
                                          state.forces, kSharedStream);
    state.tuning += centre.cost;
    if (options.error)
      plan_by_rounds(parts, centre.problem, num_problems, state);
    else
      plan_of_replicates(parts, centre.problem, num_problems, state);
    return true;
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
