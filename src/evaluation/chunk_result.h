/// @file
/// The result of one chunk of problems.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/cost.h"
#include "estimates/method.h"

namespace crais {

/// A second estimate of log Z, nats. Its maker defines its relation to the truth.
struct Witness {
  double value = 0, error = 0;
  bool is_doubtful = false;  // at least half of its own estimates are flagged
};

/// The share of settled particles that ended where forward chains hardly go.
struct SettledShare {
  double above = 0;          // share of settled particles
  double expected = 0;       // share of forward particles, by weight
  double num_effective = 0;  // 1 / (1 / settled + 1 / effective number of forward particles)
};

/// A round of an estimate that goes on until its error is small: a pilot, of particles of its own.
struct Round {
  double evaluations = 0;     // of a replicate
  double log_normalizer = 0;  // mean over replicates, nats
  double error = 0;           // of that mean, sqrt(standard error^2 + bias^2), nats
};

/// Why an estimate is not to be trusted: bits of a set.
enum Flag : int64_t {
  kFewEffective = 1,  // a standard error above 0.5 nats, or none
  kTail = 2,          // Pareto k above 0.7
  kBaseFailed = 4,    // the base is not the one asked for
  kMissedTarget = 8,  // error was not reached
  kModes = 16,        // the base covers one of several modes
  kGap = 32,          // the bounds are more than kLargeGap apart
  kApart = 64,        // coupled chains meet late or never
};
constexpr double kLargeGap = 1.0;  // nats
/// Every flag with its word in files.
const std::vector<std::pair<Flag, std::string>>& all_flags();
/// The words of a set of flags: "ess+tail", or "" for none.
std::string flag_words(int64_t flags);

/// The numbers of a tensor; empty if it is undefined.
std::vector<double> to_column(const at::Tensor& values);

/// The result of one method, one repeat and one chunk. A column has one entry a problem, or none.
struct ChunkRun {
  using Column = std::vector<double>;

  std::string method;
  int64_t repeat = 0;
  Column log_normalizer;  // nats
  Column std_error;       // Monte Carlo, nats
  Column bias;            // expected, nats
  Column ess;             // fraction
  Column pareto_k;
  Column accept_prob;             // for methods with moves
  Column upper, upper_std_error;  // for methods with an upper bound, nats
  // For draws of coupled chains: a bound on their total variation distance to the target, at most
  // 1, its Monte Carlo error, and the share of pairs that met.
  Column distance, distance_std_error, met;
  Column evaluations;          // without tuning
  std::vector<int64_t> flags;  // sets of Flag
  int64_t num_nonfinite = 0;
  Cost cost;                                            // summed over problems and particles
  double seconds = 0.0;                                 // of one thread
  std::map<std::string, ExpectationSums> expectations;  // by name in the options
  std::optional<WeightedParticles> particles;           // with `keep_particles`; never in files
  at::Tensor works;                                     // see MethodResult; never in files

  /// Every column of numbers with its name in files, in the order of files. Files leave out a rare
  /// one if no estimate has it.
  struct Named {
    std::string name;
    Column ChunkRun::*column;
    bool is_rare = false;
  };
  static const std::vector<Named>& columns();
};

/// The run of `num_problems` problems with the result `found`. Flags come from its own weights.
ChunkRun to_run(const MethodResult& found, int64_t num_problems);

/// A round from the problems of a run, which are replicates of one density. The error of their mean
/// is the larger of what their spread and their own errors say. An unknown bias makes it infinite.
Round round_of(const ChunkRun& run);

struct ChunkResult {
  int64_t chunk = 0;
  std::vector<int64_t> indices;  // of its problems in their data set
  std::vector<ChunkRun> runs;
  std::optional<Plan> plan;             // its own plan, if plans are not shared
  Cost base;                            // of fitting bases, if each problem has its own
  Cost tuning;                          // of centres, its plan, the witness
  std::optional<SettledShare> settled;  // of replicates, where there is a witness
  bool is_cut = false;      // a round stands for an estimate that was stopped; never in files
  bool is_control = false;  // of the control; its number says so in files
};

}  // namespace crais
