// The computations of `reproduce`, each of which is made once and kept.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

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

}  // namespace crais
