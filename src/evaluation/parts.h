// The checked objects that options name, and the common steps from a target to a plan.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bases/base.h"
#include "core/problem.h"
#include "core/rng.h"
#include "estimates/expectation.h"
#include "estimates/method.h"
#include "evaluation/options.h"

namespace crais {

class Driver;
struct TunedState;

/// The objects that options name. Immutable: threads may share it.
class EstimatorParts {
 public:
  /// Throws Error kArgument for unknown names and options in conflict. Null stands for images.
  explicit EstimatorParts(EstimateOptions estimate_options,
                          std::shared_ptr<const Driver> of_problems = {});

  EstimateOptions options;
  std::shared_ptr<const Driver> driver;
  std::shared_ptr<const Path> path;
  std::shared_ptr<const ScheduleRule> rule;  // for options.steps
  std::shared_ptr<const Transition> transition;
  std::shared_ptr<const Resampling> resampling;  // null: AIS
  std::vector<std::shared_ptr<const Method>> methods;
  std::vector<std::shared_ptr<const Expectation>> expectations;  // in the order of options
  PilotOptions pilot;

  /// The largest number of anneals for one estimate of any method; 0 if nothing is annealed.
  int64_t num_anneals() const;
  /// The first method that anneals. There must be one.
  const Method& annealed() const;
  /// Whether a method has chains that run back, for an upper bound.
  bool has_upper() const;
  bool needs_pilot() const { return crais::needs_pilot(*path, *rule, pilot); }
  bool shares_plan() const { return num_anneals() > 0 && pilot.shared; }
  std::unique_ptr<ScheduleRule> make_rule(int64_t steps) const;
  std::unique_ptr<Method> make_method(const std::string& name, Pilots* pilots = nullptr) const;
  /// Cost of one chain that anneals once under a plan of `steps` transitions, in evaluations.
  int64_t evaluations_per_chain(int64_t steps) const {
    return 1 + transition->evaluations_per_step() * steps;
  }

 private:
  bool wants_particles() const;
};

/// The stream of what chunks share. No chunk has this number.
constexpr uint64_t kSharedStream = std::numeric_limits<uint64_t>::max();

/// A generator on the target's device for (seed, purpose, stream).
at::Generator stream_of(const EstimatorParts& parts, const Target& target, Purpose purpose,
                        uint64_t stream);

/// Fits bases for the problems of `target`. Cost: in the base.
Base fit_base(const EstimatorParts& parts, const BaseRule& rule, const Target& target,
              uint64_t stream);
/// The same by the rule of `state`, or copies of the fit that all problems share, at no cost.
Base fit_base(const EstimatorParts& parts, const TunedState& state, const Target& target,
              uint64_t stream);
/// A plan of the parts of one fit, for `count` problems that share it.
Plan repeated(const Plan& plan, int64_t count);

/// A problem prepared for annealing: divided into the parts of its base, with `forces` if given
/// (Target::with_forces), and centred by a pilot if the path needs it; with the cost of both.
struct CentredProblem {
  Problem problem;
  Cost cost;
};
CentredProblem centred(const EstimatorParts& parts, const Target& target, const Base& base,
                       std::optional<at::ScalarType> forces, uint64_t stream);

/// A plan, made by a pilot if one is needed, with its cost.
struct TunedPlan {
  Plan plan;
  Cost cost;
};
/// Throws ScheduleError if the schedule cannot reach the target.
TunedPlan make_plan(const EstimatorParts& parts, const Problem& problem, uint64_t stream);

/// The estimate of `plan.num_particles` chains, of the user's problems where the base has parts.
/// Independent chains have random streams of a bounded number each. Cost: in the result.
MethodResult estimate_under(const Plan& plan, const Method& method, const Problem& problem,
                            uint64_t seed);

}  // namespace crais
