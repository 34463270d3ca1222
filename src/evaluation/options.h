// How a log normaliser is estimated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/schedule.h"
#include "core/transition.h"
#include "samplers/plan.h"

namespace crais {

struct EstimatorSettings {
  std::vector<std::string> methods;  // "ais", "iwae:5000", "elbo"
  std::string schedule;
  std::string path;
  std::string base;
  std::string kernel;
  std::string resample;  // empty: never
  ScheduleOptions schedule_options;
  TransitionOptions transition_options;
  PilotOptions pilot;
  int64_t pilot_problems = 0;  // a shared plan is tuned on the first so many
  int64_t chains = 0;
  std::optional<double> budget;        // evaluations of each problem, all told
  std::optional<double> target_error;  // nats, of each problem
  double max_evaluations = 0;          // of each problem, under target_error
  int64_t repeats = 1;
  uint64_t seed = 0;
};

}  // namespace crais
