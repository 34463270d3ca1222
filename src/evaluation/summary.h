/// @file
/// The results of a run of any estimating program, for each method.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "estimates/estimate.h"
#include "estimates/expectation.h"
#include "evaluation/doubts.h"
#include "evaluation/tuned_estimator.h"

namespace crais {

/// The finished part of a run, in the order of chunks.
struct RunResults {
  std::map<int64_t, ChunkResult> chunks;
  std::map<int64_t, ChunkResult> control;  // see evaluation/control.h
  TunedState state;
};

/// Adds the transitions of each column of a plan (those that start below beta = 1) to `counts`.
void add_transitions(const Plan& plan, std::vector<double>& counts);

/// The indices of all problems in their data set, in the order of chunks.
std::vector<int64_t> indices_of(const RunResults& results);

/// The results of one method by column (see ChunkRun::columns): rows are repeats, columns problems.
struct MethodTable {
  std::string method;
  std::map<std::string, std::vector<std::vector<double>>> columns;
  std::vector<std::vector<int64_t>> flags;  // sets of Flag
  Cost cost;
  int64_t num_nonfinite = 0;
  double seconds = 0.0;

  bool has(const std::string& name) const { return columns.count(name) > 0; }
  at::Tensor matrix(const std::string& name) const;  // [R,N]
  /// The flags that each problem has in any repeat.
  std::vector<int64_t> any_flags() const;
};

/// The tables of the methods, in the order of the options.
std::vector<MethodTable> tables(const RunResults& results);

/// How far from exact the draws are from which reverse chains start.
struct Exactness {
  MeanEstimate distance;  // bound on the total variation distance
  double met = 0;         // share of the pairs of chains that met
};

/// The contribution of reverse chains: an upper bound, and its distance to the lower bound.
struct Certificate {
  MeanEstimate upper;  // of log Z
  double gap = 0.0;    // upper - lower, mean over problems, nats
  double gap_std_error = 0.0;
  double largest_gap = 0.0;
  std::optional<Exactness> exactness;  // absent: their draws are exact
};

/// The summary of one method over all problems and repeats, for any meaning of the values.
struct MethodSummary {
  std::string method;
  std::string base;
  std::string bound;
  int64_t problems = 0;
  int64_t repeats = 1;
  std::optional<Certificate> certificate;
  double bias = 0.0;                     // expected bias, nats; NaN: unknown
  double ess_mean = 0.0, ess_min = 0.0;  // fractions
  std::optional<double> accept_prob;
  std::optional<double> transitions;     // mean over problems
  std::map<std::string, int64_t> flags;  // number of estimates with each flag; "any": at least one
  // Evaluations of one problem, all chains together. Shared evaluations are divided between
  // problems.
  double base_evaluations = 0.0;
  double tuning_evaluations = 0.0;
  double evaluations = 0.0;  // of one repeat
  double gradients = 0.0;    // evaluations with a gradient
  double all_evaluations() const { return base_evaluations + tuning_evaluations + evaluations; }
  Cost cost;  // of all problems and repeats: bases, pilots, learning, estimating
  int64_t num_nonfinite = 0;
  double seconds = 0.0;            // of one thread, all problems and repeats, without tuning
  std::vector<DoubtEntry> doubts;  // about the whole result; empty: its errors can be trusted
};
MethodSummary summarise_method(const MethodTable& table, const RunResults& results);

/// What a progress line says: the running mean of the first method, "log p -87.31 +- 0.21".
class RunningMean {
 public:
  explicit RunningMean(std::string label) : label_(std::move(label)) {}
  std::string add(const ChunkResult& result);

 private:
  std::string label_;
  std::vector<double> values_, ess_;
};

/// The particles of the first method and repeat, problem after problem, float64 on the CPU. Nothing
/// if a chunk has none, such as a chunk read from a file.
///
/// Chunks may have different numbers of particles. A problem with fewer particles gets particles of
/// weight zero, and its other weights grow in proportion: their mean stays the same.
std::optional<WeightedParticles> kept_particles(const RunResults& results);

}  // namespace crais
