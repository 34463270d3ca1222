/// @file
/// One live line on stderr: how far, how fast, how long still.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "evaluation/run_problems.h"

namespace crais {

struct ProgressBarOptions {
  std::string label = {};
  int64_t total = 0;  // 0: unknown
  int64_t done = 0;   // before this run, by one that is resumed; not counted in the rate
  std::string unit = "images";
  bool enabled = true;  // false: nothing is shown

  // Where it goes; the defaults are stderr and the clock. For tests.
  std::function<void(std::string_view)> write = {};
  std::function<double()> seconds = {};
  int width = -1;     // columns; -1 asks the terminal
  int terminal = -1;  // 1 redraws one line, 0 writes whole lines; -1 asks
};

/// What a progress line says; `width` < 0 writes it whole and without a bar.
struct ProgressLine {
  std::string label;
  int64_t done = 0;
  int64_t total = 0;
  std::string unit;
  std::string status;
  double elapsed = 0.0;  // seconds of this run
  int64_t done_before = 0;
  bool finished = false;
};
std::string render_progress(const ProgressLine& line, int width);

/// On a terminal one redrawn line with a bar; elsewhere a plain line after 2 seconds, then every
/// 10. Any thread may call any member. Never throws; a failing stderr is ignored.
///
///     crais::ProgressBar bar({.label = "mine", .total = 100});
///     bar.advance();
///     bar.finish();
class ProgressBar {
 public:
  explicit ProgressBar(ProgressBarOptions options);
  ~ProgressBar();  // leaves the terminal with a finished line
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void advance(int64_t by = 1) noexcept;
  /// Sets the count and the free text, "log p -87.31 +- 0.21  ESS 0.62".
  void update(int64_t done, const std::string& status) noexcept;
  /// The last line, with the time taken. Later calls do nothing.
  void finish() noexcept;

 private:
  void show() noexcept;
  void draw() noexcept;

  ProgressBarOptions options_;
  ProgressLine line_;
  std::mutex mutex_;
  bool redraws_ = false;
  double start_ = 0.0;
  double next_ = 0.0;  // the time before which nothing is drawn
};

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
  int64_t done_ = 0;
  std::unique_ptr<ProgressBar> running_;
};

}  // namespace crais
