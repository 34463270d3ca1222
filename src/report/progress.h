/// @file
/// One live line on stderr: progress, rate and remaining time.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "evaluation/run_problems.h"

namespace crais {

struct ProgressOptions {
  std::string label = {};
  std::string unit = "problems";
  std::string value = "log Z";  // the name of a run's mean
  bool enabled = true;          // false: no output

  // The screen, its columns (0: it is no terminal) and a clock; by default those of stderr.
  std::function<void(std::string_view)> write = {};
  std::function<int()> width = {};
  std::function<double()> seconds = {};
};

/// A progress line: on a terminal one redrawn line with a bar, elsewhere a plain line after 2
/// seconds and then every 10 seconds. As the observer of a run it shows the running mean of the
/// first method with its error, and stops at SIGINT and SIGTERM (see install_interrupt_handler).
/// Any thread may call any member. Never throws while it shows; a failing stderr is ignored.
///
///     crais::ProgressLine progress({.label = "mine"});
///     crais::Result r = crais::estimate_log_normalizer(target, {}, {.observer = &progress});
///     progress.finish();
class ProgressLine : public RunObserver {
 public:
  explicit ProgressLine(ProgressOptions options);
  ~ProgressLine() override { finish(); }  // leaves the terminal with a finished line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Starts the clock. `done` of `total` (0: unknown) are of earlier runs, and not in the rate.
  void begin(int64_t done, int64_t total) override;
  void chunk(const ChunkResult& result) override;
  bool stop() override;

  /// Sets the count and a free text, such as "log p -87.31 +- 0.21  ESS 0.62".
  void update(int64_t done, const std::string& status) noexcept;
  /// Writes the last line, with the elapsed time. Later calls do nothing.
  void finish() noexcept;

 private:
  void show(bool must, bool is_last = false) noexcept;
  std::string line(double elapsed, int width, bool is_last) const;

  ProgressOptions options_;
  std::mutex mutex_;
  RunningMean mean_;
  std::string status_;
  int64_t before_ = 0, done_ = 0, total_ = 0;
  double start_ = 0, next_ = 0;  // times of `begin` and of the next line
  bool is_shown_ = false;        // from `begin` to `finish`
};

}  // namespace crais
