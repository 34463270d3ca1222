// Experiments of `reproduce`. Each is a file that enrols itself.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/registry.h"
#include "programs/reproduce/page.h"

namespace crais {

/// A difference between the released code of a publication and its text, or a mistake, that changes
/// a number. An experiment can repeat such numbers with the fault switched on by name. The library
/// has none of these faults.
struct Fault {
  std::string name;  // "" if there is nothing to switch on
  std::string did, right, changes;
};

struct ExperimentOptions {
  bool full = false;  // published sizes instead of sizes that take minutes
  int64_t seeds = 0;  // 0: the experiment's own number
  std::string checkpoint, data_dir;
  std::filesystem::path out;    // tables
  std::filesystem::path cells;  // finished computations, which experiments share
  c10::Device device = c10::kCPU;
  int64_t threads = 0;
  bool quiet = false;
  bool accept_other_version = false;  // of stored results
  std::vector<std::string> faults;    // that are switched on; "all" stands for all faults

  bool has(const std::string& fault) const;
  template <typename T>
  T pick(T at_full, T quickly) const {
    return full ? at_full : quickly;
  }
  int64_t num_seeds(int64_t at_full, int64_t quickly) const {
    return seeds > 0 ? seeds : pick(at_full, quickly);
  }
};

/// One computation of an experiment: a key that identifies it, and a function that makes it.
struct Task {
  nlohmann::json key;                       // everything that the result depends on
  std::function<nlohmann::json()> compute;  // on one thread
};

/// The file that stores the result of the task with this key.
std::filesystem::path cell_path(const ExperimentOptions& options, const nlohmann::json& key);

/// Runs tasks in parallel with progress. Each result is stored in the folder of cells under a
/// digest of its key. A finished task is never run again, by any experiment, so the same command
/// resumes an interrupted run. Throws Error: kInterrupted, after the started tasks, if a signal has
/// arrived; kData for a damaged result; kArgument for a result of another build (see computed_by),
/// unless `accept_other_version`.
/// @return  the results, in the order of tasks.
std::vector<nlohmann::json> run_tasks(const ExperimentOptions& options, const std::string& label,
                                      const std::vector<Task>& tasks);

class Experiment {
 public:
  virtual ~Experiment() = default;
  virtual std::vector<Fault> faults() const { return {}; }
  /// The flags among --seeds, --checkpoint and --data-dir that the experiment uses.
  virtual std::set<std::string> flags() const { return {"seeds"}; }
  virtual void run(const ExperimentOptions& options, Page& page) const = 0;
};

using ExperimentRegistry = Registry<Experiment>;

/// Enrols an experiment without parameters.
template <typename E>
struct EnrolExperiment : Enrol<ExperimentRegistry> {
  EnrolExperiment(const std::string& name, const std::string& summary)
      : Enrol(name, {name, summary, name, [](Spec&) { return std::make_unique<E>(); }}) {}
};

}  // namespace crais
