/// @file
/// What a person sees of a run, and how they stop it.
#pragma once

#include <memory>
#include <string>

#include "evaluation/run_problems.h"
#include "report/progress.h"

namespace crais {

struct RunProgressOptions {
  std::string program;            // the bar's label
  std::string unit = "problems";  // what it counts
  std::string value = "log Z";    // what the running mean is of
  bool enabled = true;
};

/// A line on stderr: how far, how fast, the running mean of the first method with its error. Stops
/// at SIGINT and SIGTERM (see install_interrupt_handler).
///
///     crais::RunProgress progress({.program = "mine"});
///     crais::Result r = crais::estimate_log_normalizer(target, {}, {.observer = &progress});
///     progress.finish();
class RunProgress : public RunObserver {
 public:
  explicit RunProgress(RunProgressOptions options);

  void begin(int64_t done, int64_t total) override;
  void chunk(const ChunkResult& result) override;
  bool stop() override;
  /// Leaves the terminal with a finished line.
  void finish();

 private:
  RunProgressOptions options_;
  RunningMean mean_;
  std::unique_ptr<ProgressBar> running_;
};

}  // namespace crais
