// Replicates of one target, estimated side by side.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "apps/estimate_logz_settings.h"
#include "core/problem.h"
#include "estimates/method.h"
#include "report/progress.h"

namespace crais {

/// One method on all replicates. Vectors hold problem p of repeat r at r * problems + p.
struct LogzResult {
  std::string method;
  Bound bound = Bound::kEstimate;
  std::vector<double> log_normalizer;  // nats
  std::vector<double> std_error;       // Monte Carlo, nats
  std::vector<double> ess;             // fraction
  std::vector<double> accept_prob;     // empty for methods without moves
  int64_t num_nonfinite = 0;
  Cost cost;             // summed over problems, repeats and particles
  double seconds = 0.0;  // summed over threads
};

struct LogzResults {
  int64_t dim = 0;
  std::optional<double> truth;  // nats
  std::vector<LogzResult> methods;
  std::optional<Plan> shared_plan;
  std::vector<Plan> plans;  // with --per-problem: one a chunk, in order
  Cost tuning;
};

/// Builds targets, samplers and methods, then estimates in chunks of replicates, each seeded by
/// (seed, chunk, purpose) alone, so that no result depends on the number of threads.
class LogzRun {
 public:
  /// Throws Error kUsage for unknown names, or as the target's file makes it.
  explicit LogzRun(const LogzSettings& settings);

  /// Throws Error kInterrupted after Ctrl-C.
  LogzResults run();

 private:
  int64_t num_chunks() const {
    return (settings_.problems + settings_.chunk - 1) / settings_.chunk;
  }
  int64_t chunk_size(int64_t chunk) const;
  bool anneals() const;
  std::unique_ptr<Target> make_target(int64_t num_problems) const;
  /// Centred by a pilot where the path asks for it; the pilot's cost goes to `tuning`.
  Problem problem_of(const Target& target, uint64_t stream, Cost& tuning) const;
  Plan tune_on(const Problem& problem, uint64_t stream, Cost& tuning) const;
  void tune_shared();
  void estimate(int64_t chunk, ProgressBar& progress);

  LogzSettings settings_;
  std::unique_ptr<Path> path_;
  std::unique_ptr<ScheduleRule> rule_;
  std::unique_ptr<Transition> transition_;
  std::vector<std::unique_ptr<Method>> methods_;
  std::unique_ptr<Target> whole_, rest_;  // of a whole chunk, and of a last one that is not whole
  std::mutex results_mutex_;
  LogzResults results_;
};

}  // namespace crais
