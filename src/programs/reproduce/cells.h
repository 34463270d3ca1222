// The computations of `reproduce`, each of which is made once and kept, and what they come to.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "evaluation/run_problems.h"

namespace crais {

struct ExperimentOptions {
  bool full = false;  // published sizes instead of sizes that take minutes
  int64_t seeds = 0;  // 0: the experiment's own numbers
  std::string checkpoint, data_dir;
  std::filesystem::path out;    // tables
  std::filesystem::path cells;  // finished computations, which experiments share
  c10::Device device = c10::kCPU;
  int64_t threads = 0;
  bool quiet = false;
  bool accept_other_version = false;  // of stored results
};

/// One computation of an experiment: a key that identifies it, and a function that makes it.
struct Task {
  nlohmann::json key;                       // everything that the result depends on
  std::function<nlohmann::json()> compute;  // on one thread
};

/// The file that stores the result of the task with this key.
std::filesystem::path cell_path(const ExperimentOptions& options, const nlohmann::json& key);

/// Runs tasks in parallel with progress, equal ones once. Each result is stored in the folder of
/// cells under a digest of its key. A finished task is never run again, so the same command
/// resumes an interrupted run. Throws Error: kInterrupted, after the started tasks, if a signal has
/// arrived; kData for a damaged result; kArgument for a result of another build (see computed_by),
/// unless `accept_other_version`.
/// @return  the results, in the order of tasks.
std::vector<nlohmann::json> run_tasks(const ExperimentOptions& options, const std::string& label,
                                      const std::vector<Task>& tasks);

/// The result of the first method for the problems, on one thread, with the additions of `add`. If
/// a plan cannot be made (PlanError), the result is {"failed": why}.
nlohmann::json estimate_cell(
    const EstimateOptions& options, const ProblemSource& problems,
    const std::function<void(const RunResults&, nlohmann::json&)>& add = {});

/// The results of one variant (flags of eval-loglik or estimate-logz). Empty if it has failed.
struct VariantResult {
  /// By name, for each seed:
  /// - of each problem: ChunkRun::columns, and `flags`;
  /// - one number: evaluations of a problem (`base`, `tuning`, `estimating`), `transitions` of a
  ///   plan, `training_seconds` on one thread;
  /// - the first plan: `betas`, and the pilot's estimates of the `divergence`, if there was one;
  /// - what add_cloud adds (subject.cpp).
  std::map<std::string, std::vector<at::Tensor>> values;
  std::string failed;       // the reason of a failure; else ""
  bool unfinished = false;  // failed because its plan has more than --max-steps steps

  at::Tensor column(const std::string& name) const;  // [S,N]; NaN [1,1] if there is none
  double mean(const std::string& name) const;        // of one number a seed; NaN if there is none
  at::Tensor first(const std::string& name) const;   // of the first seed; [0] if there is none
  double evaluations() const { return mean("base") + mean("tuning") + mean("estimating"); }
};

/// The results of the seeds of one variant, from their cells.
VariantResult result_of(const std::vector<nlohmann::json>& cells);

}  // namespace crais
