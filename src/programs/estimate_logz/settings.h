// The settings of estimate-logz.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "evaluation/doubts.h"
#include "programs/estimator_flags.h"

namespace crais {

struct LogzSettings : RunSettings {
  std::string target;    // "normal:128"
  int64_t problems = 0;  // number of replicates
  std::string data_dir;
  std::string particles_file;      // empty: particles are not saved
  bool resampled = false;          // save particles with equal weights
  bool wants_samples = false;      // the caller reads particles from the report
  std::vector<std::string> notes;  // remarks on a target that is a function
  std::vector<DoubtEntry> doubts;  // of that function
  std::string identity;            // tells that function from others
  bool is_single = false;          // it computes in float32, whatever dtype z has
};

Synopsis estimate_logz_synopsis();
LogzSettings read_logz_settings(const CommandLine& cli);

}  // namespace crais
