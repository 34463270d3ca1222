// Experiments of `reproduce`: each a file that enrols itself.
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
#include "report/page.h"

namespace crais {

/// Where the code released with a publication does otherwise than its text, or than is right, and a
/// number depends on it. An experiment can repeat such numbers, with the fault switched on by name;
/// the library has none of them.
struct Fault {
  std::string name;  // "" where there is nothing to switch on
  std::string did, right, changes;
};

struct ExperimentOptions {
  bool full = false;  // the sizes that were published, rather than minutes
  int64_t seeds = 0;  // 0: the experiment's own number
  std::string checkpoint, data_dir;
  std::filesystem::path out;    // tables and pictures
  std::filesystem::path cells;  // finished computations, which experiments share
  c10::Device device = c10::kCPU;
  int64_t threads = 0;
  bool quiet = false;
  bool accept_other_version = false;  // of results that are there
  std::vector<std::string> faults;    // that are switched on; "all" stands for every one

  bool has(const std::string& fault) const;
  template <typename T>
  T pick(T at_full, T quickly) const {
    return full ? at_full : quickly;
  }
  int64_t num_seeds(int64_t at_full, int64_t quickly) const {
    return seeds > 0 ? seeds : pick(at_full, quickly);
  }
};

/// One computation of an experiment: what decides it, and how to make it.
struct Task {
  nlohmann::json key;                       // everything that the result depends on
  std::function<nlohmann::json()> compute;  // on one thread
};

/// Where the result of the task with this key is kept.
std::filesystem::path cell_path(const ExperimentOptions& options, const nlohmann::json& key);

/// Runs tasks side by side with progress. Each result is kept in the folder of cells by a digest of
/// its key, so that what is done is never done again, by whichever experiment: resuming is the same
/// command.
/// Throws Error kInterrupted once those begun are finished, if a signal has come; kData for a
/// result that is damaged; kArgument for one that another build has computed (see identity.h),
/// unless `accept_other_version`.
/// @return  the results, in the order of tasks.
std::vector<nlohmann::json> run_tasks(const ExperimentOptions& options, const std::string& label,
                                      const std::vector<Task>& tasks);

class Experiment {
 public:
  virtual ~Experiment() = default;
  virtual std::vector<Fault> faults() const { return {}; }
  /// Those of --seeds, --checkpoint and --data-dir that it has a use for.
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
