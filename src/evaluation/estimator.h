// Estimates one chunk of problems with everything the flags ask for: what threads do side by side.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bases/base.h"
#include "core/problem.h"
#include "estimates/method.h"
#include "evaluation/options.h"
#include "samplers/budget.h"

namespace crais {

/// Why an estimate is not to be trusted; bits of `ChunkRun::flags`.
enum Flag : int {
  kFewEffective = 1,  // a standard error above 0.5 nats, or none
  kTail = 2,          // Pareto k above 0.7
  kBaseFailed = 4,    // the base is not the one asked for
  kMissedTarget = 8,  // --target-error was not reached
  kModes = 16,        // the base covers one of several modes
};
/// "ess+tail", or "" for none.
std::string flag_words(int flags);

/// One method, one repeat, one chunk. A column has one entry a problem, or none at all.
struct ChunkRun {
  using Column = std::vector<double>;

  std::string method;
  int64_t repeat = 0;
  Column log_normalizer;  // nats
  Column std_error;       // Monte Carlo, nats
  Column bias;            // expected, nats
  Column ess;             // fraction
  Column pareto_k;
  Column accept_prob;             // of methods with moves
  Column upper, upper_std_error;  // of methods with an upper bound, nats
  Column evaluations;             // without tuning
  Column flags;                   // see Flag
  int64_t num_nonfinite = 0;
  Cost cost;             // summed over problems and particles
  double seconds = 0.0;  // of one thread

  /// Every column with the name it has in files, in their order.
  static const std::vector<std::pair<std::string, Column ChunkRun::*>>& columns();
};

struct ChunkResult {
  int64_t chunk = 0;
  std::vector<int64_t> indices;
  std::vector<ChunkRun> runs;
  std::optional<Plan> plan;  // with --per-PROBLEM: this chunk's own
  Cost base;                 // of fitting bases
  Cost tuning;               // of centres, that plan, and the chains that choose how many
};

/// What all chunks have in common.
struct Shared {
  std::string base;          // a name of BaseRegistry
  std::optional<Plan> plan;  // absent where nothing is annealed, and with --per-PROBLEM
  Cost tuning;
  std::map<std::string, Cost> prepared;  // of methods that learn, by their names
};

/// Built once and shared by threads.
class Estimator {
 public:
  /// Throws Error kUsage for unknown names and settings that exclude each other.
  explicit Estimator(const EstimatorSettings& settings);

  bool anneals() const;
  bool needs_exact_draws() const;
  bool needs_pilot() const;
  bool is_adaptive() const { return rule_->is_adaptive(); }

  /// Chooses the base and makes the shared plan, on these problems or fewer; `num_problems` are to
  /// be estimated in all. --base auto is Laplace, unless another's estimates, lower bounds all, are
  /// clearly higher on pilots; the encoder where nothing is annealed. To be called, or `set_shared`
  /// with what it returned, before `estimate`.
  const Shared& tune_shared(const Target& target, int64_t num_problems);
  void set_shared(Shared shared);

  /// How many particles are annealed together, at most, for a chunk of so many problems.
  int64_t most_particles(int64_t num_problems, int64_t dim) const;

  /// Lets methods that learn do so, on these problems; costs go to `shared().prepared`. To be
  /// called after either of the above. A function of settings and problems, so that a resumed run
  /// learns the same again. Nothing happens, at no cost, where no method learns.
  void prepare(const Target& target, const PrepareReport& report = {});
  const Shared& shared() const { return shared_; }

  /// Seeded by (seed, chunk, purpose) alone.
  ChunkResult estimate(int64_t chunk, const Target& target) const;

 private:
  bool shares_plan() const { return anneals() && settings_.pilot.shared; }
  void choose_base(const Target& target, int64_t num_problems);
  void use_base(const std::string& name);
  Base base_of(const Target& target, uint64_t stream) const;
  /// Centred by a pilot where the path asks for it; the pilot's cost goes to `tuning`.
  Problem centred(const Target& target, const AffineMap& base, uint64_t stream, Cost& tuning) const;
  Plan tune_on(const Problem& problem, uint64_t stream) const;
  Plan budgeted(const Target& target, int64_t num_problems, Cost& tuning) const;
  std::unique_ptr<ScheduleRule> make_rule(int64_t steps) const;
  int64_t evaluations_per_chain(const Plan& plan) const;

  ChunkRun run_method(size_t method, const Problem& problem, const Plan& plan,
                      at::Generator& rng) const;
  /// As many chains for each problem as --target-error takes, decided by pilot chains of their own.
  ChunkRun run_to_target(size_t method, const Problem& problem, const Plan& plan,
                         at::Generator& rng, Cost& tuning) const;

  EstimatorSettings settings_;
  std::unique_ptr<BaseRule> base_;
  std::unique_ptr<Path> path_;
  std::unique_ptr<ScheduleRule> rule_;
  std::unique_ptr<Transition> transition_;
  std::unique_ptr<Resampling> resampling_;  // absent: AIS
  std::vector<std::unique_ptr<Method>> methods_;
  Shared shared_;
};

}  // namespace crais
