// An estimate of a target's log normaliser, for the program and for Python: settings and run.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/target.h"
#include "evaluation/doubts.h"
#include "evaluation/run_problems.h"
#include "programs/estimator_flags.h"
#include "report/run_report.h"

namespace crais {

struct LogzSettings : RunSettings {
  std::string target;    // "normal:128"
  int64_t problems = 0;  // number of replicates
  std::string data_dir;
  std::string particles_file;      // empty: particles are not saved
  bool wants_samples = false;      // the caller reads particles from the report
  std::vector<std::string> notes;  // remarks on a target that is a function
  std::vector<DoubtEntry> doubts;  // of that function
  std::string identity;            // tells that function from others
  bool is_single = false;          // it computes in float32, whatever dtype z has
};

Synopsis estimate_logz_synopsis();
LogzSettings read_logz_settings(const CommandLine& cli);

/// The registered target of the settings.
std::shared_ptr<const Target> named_target(const LogzSettings& settings);

/// Estimates, and writes the files of the settings. If the observer stops the run, the report has
/// the finished chunks. Throws Error kArgument if settings and target exclude each other.
RunReport run_logz(LogzSettings settings, const std::shared_ptr<const Target>& target,
                   RunObserver& observer);

/// Makes a target for the settings, which it may add to.
using TargetOf = std::function<std::shared_ptr<const Target>(LogzSettings& settings)>;

/// The program: estimates, and prints and writes what the command line asks for.
void estimate_logz(const CommandLine& cli, const TargetOf& target_of);

/// The same for a registered target, or a list of these. Returns the exit code.
int estimate_logz(int argc, char** argv);

/// `count` rows of z [K,2], resampled systematically by their weights [K]. The chosen rows have
/// equal weight. float64.
at::Tensor thinned(const at::Tensor& z, const at::Tensor& log_w, int64_t count, uint64_t seed);

}  // namespace crais
