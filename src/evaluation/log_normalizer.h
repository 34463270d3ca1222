/// @file
/// Log normalisers with their errors and diagnostics: the whole library in one call.
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

/// The result of the first of `methods` for each problem. The tensors are [P] on the CPU, float64
/// except for `flags`, and means over repeats if there are several.
struct Result {
  at::Tensor value;                 ///< estimates of log Z, nats: a lower bound on average (Jensen)
  at::Tensor std_error;             ///< Monte Carlo error, nats
  at::Tensor bias;                  ///< expected bias of `value`, nats, at most 0; NaN if unknown
  at::Tensor ess;                   ///< effective fraction of the chains, in [1/K, 1]
  at::Tensor flags;                 ///< int64, sets of Flag: estimates not to be trusted; 0: none
  std::optional<at::Tensor> upper;  ///< upper bounds on average, nats, if the method has them
  Bound bound = Bound::kLower;
  std::string base;       ///< the base that was used, such as "laplace"
  Cost cost;              ///< total for all problems: bases, pilots, learning and estimating
  MethodSummary summary;  ///< means over problems; evaluations are those of one problem
  RunResults run;         ///< the complete run: other methods, the plan, every chunk

  /// The flags of problem `p` in words, "ess+tail"; "" if it has none.
  std::string flag_words(int64_t p) const;
};

/// Settings of a run that do not change its result.
struct LogNormalizerRun {
  int64_t threads = 0;                ///< 0: one for each core
  RunObserver* observer = nullptr;    ///< receives progress and may stop the run
  std::filesystem::path folder = {};  ///< stores finished chunks; empty: no store
  std::string name = {};              ///< of the target; a folder of another name is rejected
  StoreOptions store = {};            ///< resume, overwrite
};

/// Estimates the log normaliser of every problem of `target`: base, pilots, annealing, estimate.
///
///     crais::FunctionTarget target({.dim = 2}, log_density);
///     const crais::Result r = crais::estimate_log_normalizer(target, {.chains = 16, .seed = 1});
///     std::printf("log Z = %.3f +- %.3f\n", r.value.item<double>(), r.std_error.item<double>());
///
/// A target that cannot select (see Traits) is one chunk on one thread. `driver`: see Estimator.
/// Throws the errors of its parts. If the observer stops the run, throws Error kInterrupted; with a
/// `folder` the run can be resumed. Cost: `summary`, in evaluations of one problem.
Result estimate_log_normalizer(const Target& target, const EstimateOptions& options = {},
                               const LogNormalizerRun& run = {},
                               std::shared_ptr<const Driver> driver = {});

}  // namespace crais
