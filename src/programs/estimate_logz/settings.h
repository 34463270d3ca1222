// What estimate-logz is asked to do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "programs/estimator_flags.h"

namespace crais {

struct LogzSettings : RunSettings {
  std::string target;    // "normal:128"
  int64_t problems = 0;  // replicates
  std::string data_dir;
  std::string particles_file;      // empty: particles are not saved
  bool resampled = false;          // save them with equal weights
  bool wants_samples = false;      // the caller takes particles from the report
  std::vector<std::string> notes;  // what was made of the function
};

Synopsis estimate_logz_synopsis();
LogzSettings read_logz_settings(const CommandLine& cli);

}  // namespace crais
