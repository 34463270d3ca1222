// --max-time: a run that stops between chunks before its time is over.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "evaluation/run_problems.h"

namespace crais {

/// Seconds since the program began.
double seconds_of_process();

/// Passes on to another observer, and stops the run when the time is over, or when a chunk that
/// began now would not end in time if it took as long as the longest of this run. A pilot is never
/// cut short: what it tuned is stored before the first chunk is asked for. A chunk under way is
/// finished.
class TimeLimit : public RunObserver {
 public:
  /// `limit` in seconds; without it the run is never stopped here. `elapsed` is what it holds for.
  TimeLimit(RunObserver& observer, std::optional<double> limit,
            std::function<double()> elapsed = seconds_of_process);

  void begin(int64_t done, int64_t total) override;
  void chunk(const ChunkResult& result) override;
  bool stop() override;

  /// True if the run was stopped here.
  bool is_over() const;
  /// True if a chunk was computed, not found in the store.
  bool has_advanced() const;

 private:
  RunObserver& observer_;
  std::optional<double> limit_;
  std::function<double()> elapsed_;
  mutable std::mutex mutex_;                 // of all below: threads ask side by side
  std::map<std::thread::id, double> begun_;  // when a thread was let go on
  double longest_ = 0;                       // seconds of a chunk
  bool is_over_ = false, has_advanced_ = false;
};

}  // namespace crais
