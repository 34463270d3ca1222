// --max-time: the run stops between chunks before its time is over.
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

/// Forwards to another observer. Stops the run when the time is over, or when a chunk that started
/// now would end too late if it took as long as the longest chunk of this run. A pilot is never
/// stopped: its plan is stored before the first chunk. A started chunk is finished.
class TimeLimit : public RunObserver {
 public:
  /// `limit` in seconds; without a limit the run never stops here. `elapsed` measures the time.
  TimeLimit(RunObserver& observer, std::optional<double> limit,
            std::function<double()> elapsed = seconds_of_process);

  void begin(int64_t done, int64_t total) override;
  void chunk(const ChunkResult& result) override;
  bool stop() override;

  /// True if the time limit stopped the run.
  bool is_over() const;
  /// True if a chunk was computed in this run.
  bool has_advanced() const;

 private:
  RunObserver& observer_;
  std::optional<double> limit_;
  std::function<double()> elapsed_;
  mutable std::mutex mutex_;                 // guards all below: threads call at the same time
  std::map<std::thread::id, double> begun_;  // time at which a thread started its chunk
  double longest_ = 0;                       // duration of the longest chunk, seconds
  bool is_over_ = false, has_advanced_ = false;
};

}  // namespace crais
