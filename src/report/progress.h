/// @file
/// One live line on stderr: progress, rate and remaining time.
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
  int64_t done = 0;   // by earlier runs that this run resumes; not counted in the rate
  std::string unit = "images";
  bool enabled = true;  // false: no output

  // The output; by default stderr and the clock. For tests.
  std::function<void(std::string_view)> write = {};
  std::function<double()> seconds = {};
  int width = -1;     // columns; -1: ask the terminal
  int terminal = -1;  // 1: redraw one line; 0: write whole lines; -1: ask the system
};

/// The content of a progress line. If `width` < 0, the line is complete and has no bar.
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

/// A progress line: on a terminal one redrawn line with a bar, elsewhere a plain line after 2
/// seconds and then every 10 seconds. Any thread may call any member. Never throws; a failing
/// stderr is ignored.
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
  /// Sets the count and a free text, such as "log p -87.31 +- 0.21  ESS 0.62".
  void update(int64_t done, const std::string& status) noexcept;
  /// Writes the last line, with the elapsed time. Later calls do nothing.
  void finish() noexcept;

 private:
  void show() noexcept;
  void draw() noexcept;

  ProgressBarOptions options_;
  ProgressLine line_;
  std::mutex mutex_;
  bool redraws_ = false;
  double start_ = 0.0;
  double next_ = 0.0;  // time of the next redraw
};

struct RunProgressOptions {
  std::string program;            // the label of the bar
  std::string unit = "problems";  // the counted things
  std::string value = "log Z";    // the name of the running mean
  bool enabled = true;
};

/// A line on stderr: progress, rate, and the running mean of the first method with its error. Stops
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
