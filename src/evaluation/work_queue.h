// Chunks shared out among workers that have one folder in common.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace crais {

/// What workers of one run tell each other: who has taken which name, and who is alive. Threads
/// call it side by side. What others have written is checked; a worker is named by hexadecimal
/// digits. Throws Error kInterrupted where they can no longer be reached.
class Claims {
 public:
  virtual ~Claims() = default;

  /// Gives `name` to `worker` unless somebody has it; who has it now.
  virtual std::string take(const std::string& name, const std::string& worker) = 0;
  /// A number below `count` that is likely to be nobody's; nothing if all are somebody's.
  virtual std::optional<int64_t> draw(int64_t count) = 0;
  /// Says that the worker is alive.
  virtual void beat(const std::string& worker) = 0;
  /// Says that the worker ends: what it has is free.
  virtual void leave(const std::string& worker) = 0;
  /// Another text after each `beat`; kGone after `leave`.
  virtual std::string last_beat(const std::string& worker) = 0;

  static constexpr const char* kGone = "gone";
  /// Whether that is a worker's name, and not something else that was written there.
  static bool is_worker(const std::string& name);
};

/// One worker's share of the chunks. A worker that has shown no sign of life for the length of a
/// lease has lost what it took. That is measured on the clock of whoever waits for it, so clocks
/// need not agree. A chunk is a function of options, problems and its number: where a worker was
/// only slow, two of them compute the same, and nothing but time is lost.
class WorkQueue {
 public:
  using Stop = std::function<bool()>;
  using Finished = std::function<std::set<int64_t>()>;

  /// Shows signs of life from now on, by a thread of its own.
  WorkQueue(std::shared_ptr<Claims> claims, std::chrono::milliseconds lease);
  /// Leaves: what it holds is free at once.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  /// Some work is one worker's, and the others wait for it. True if it falls to this one, now;
  /// false once `is_done()` or `stop()` holds.
  bool lead(const std::string& work, const std::function<bool()>& is_done, const Stop& stop);

  /// A chunk below `count` to compute next; nothing once `finished()` holds all but what was given
  /// here, or once `stop()` holds. Waits where others have the rest, lest one of them die.
  std::optional<int64_t> next(int64_t count, const Finished& finished, const Stop& stop);

 private:
  bool claim(const std::string& name);
  bool has_lapsed(const std::string& worker, const std::string& name);
  bool claim(int64_t chunk, const Finished& finished);
  std::optional<int64_t> drawn(int64_t count, const Finished& finished);
  std::optional<int64_t> left_behind(const std::vector<int64_t>& missing, const Finished& finished);
  std::vector<int64_t> missing(int64_t count) const;
  bool wait(std::chrono::milliseconds time, const Stop& stop) const;
  void show_life();

  struct Sign {
    std::string beat;
    std::chrono::steady_clock::time_point since;  // seen first
  };

  std::shared_ptr<Claims> claims_;
  std::chrono::milliseconds lease_;
  std::string worker_;
  uint64_t offset_;                         // where it begins to look for what others left behind
  std::mutex mutex_;                        // of what follows
  std::map<std::string, Sign> signs_;       // of other workers, by their names
  std::map<std::string, int> generations_;  // of names: the first whose owner may be alive
  std::optional<std::set<int64_t>> finished_;
  std::set<int64_t> given_;  // by `next`
  bool is_drawn_ = false;    // every chunk is, or was, somebody's

  std::mutex life_;
  std::condition_variable end_of_life_;
  bool ends_ = false;
  std::thread heart_;
};

}  // namespace crais
