/// @file
/// A log normaliser with everything that says how good it is: the whole library in one call.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "estimates/estimate.h"
#include "evaluation/chunks.h"
#include "evaluation/run_problems.h"

namespace crais {

/// What the first of `methods` has found, problem by problem. The tensors are [P], float64 but for
/// `flags`, on the CPU; means over repeats where there are several.
struct Result {
  at::Tensor value;      ///< estimates of log Z, nats: a lower bound on average (Jensen)
  at::Tensor std_error;  ///< Monte Carlo, nats
  at::Tensor bias;       ///< to be expected of `value`, nats, at most 0; NaN where unknown
  at::Tensor ess;        ///< effective fraction of the chains, in [1/K, 1]
  at::Tensor flags;      ///< int64, sets of Flag: estimates not to be trusted; 0: none
  std::optional<at::Tensor> upper;  ///< upper bounds on average, nats, of methods that have them
  Bound bound = Bound::kLower;
  std::string base;       ///< that was used, such as "laplace"
  Cost cost;              ///< of all problems: bases, pilots, learning and estimating
  MethodSummary summary;  ///< means over problems; evaluations are of one
  RunResults run;         ///< everything: other methods, the plan, every chunk

  /// "ess+tail", or "": why not to trust the estimate of problem `p`.
  std::string flag_words(int64_t p) const;
};

/// Where and how a run is done; nothing here changes a result.
struct LogNormalizerRun {
  int64_t threads = 0;                ///< 0: one a core
  RunObserver* observer = nullptr;    ///< hears of progress, may stop the run
  std::filesystem::path folder = {};  ///< where finished chunks are kept; empty: nowhere
  std::string name = {};              ///< of the target, for the folder: another name is refused
  StoreOptions store = {};            ///< resume, overwrite
};

/// Estimates the log normaliser of every problem of `target`: base, pilots, annealing, estimate.
///
///     crais::FunctionTarget target({.dim = 2}, log_density);
///     const crais::Result r = crais::estimate_log_normalizer(target, {.chains = 16, .seed = 1});
///     std::printf("log Z = %.3f +- %.3f\n", r.value.item<double>(), r.std_error.item<double>());
///
/// A target that cannot select (see Target::can_select) is one chunk, done by one thread.
/// Throws Error as the parts do; Error kInterrupted where the observer stopped the run, which
/// a `folder` can be resumed from. Cost: `summary`, in evaluations of a problem.
Result estimate_log_normalizer(const Target& target, const EstimateOptions& options = {},
                               const LogNormalizerRun& run = {});

}  // namespace crais
