// Chunks that are shared out to workers with a common folder.
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

/// The communication between workers of one run: who has taken which name, and who is alive.
/// Threads call it at the same time. Texts of others are checked; hexadecimal digits name a worker.
/// Throws Error kInterrupted if the workers can no longer be reached.
class Claims {
 public:
  virtual ~Claims() = default;

  /// Gives `name` to `worker` unless it is taken. Returns its owner.
  virtual std::string take(const std::string& name, const std::string& worker) = 0;
  /// A number below `count` that is probably not taken; nothing if all are taken.
  virtual std::optional<int64_t> draw(int64_t count) = 0;
  /// Signals that the worker is alive.
  virtual void beat(const std::string& worker) = 0;
  /// Signals that the worker ends: its names are free.
  virtual void leave(const std::string& worker) = 0;
  /// A text that changes with each `beat`; kGone after `leave`.
  virtual std::string last_beat(const std::string& worker) = 0;

  static constexpr const char* kGone = "gone";
  /// True if `name` is a worker's name and not some other text.
  static bool is_worker(const std::string& name);
};

/// One worker's share of the chunks. A worker without a sign of life for the length of a lease
/// loses what it took. The waiting worker measures that time on its own clock, so clocks need not
/// agree. A chunk is a function of options, problems and its number: if a worker was only slow, two
/// workers compute the same result, and only time is lost.
class WorkQueue {
 public:
  using Stop = std::function<bool()>;
  using Finished = std::function<std::set<int64_t>()>;

  /// Starts a thread that gives signs of life.
  WorkQueue(std::shared_ptr<Claims> claims, std::chrono::milliseconds lease);
  /// Leaves: its chunks are free at once.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  /// Assigns work that one worker does while the others wait. Returns true if this worker must do
  /// it now, false once `is_done()` or `stop()` is true.
  bool lead(const std::string& work, const std::function<bool()>& is_done, const Stop& stop);

  /// The next chunk below `count` to compute. Returns nothing once `finished()` holds all chunks
  /// but those given to this worker, or once `stop()` is true. Waits while others have the rest,
  /// because one of them may die.
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
    std::chrono::steady_clock::time_point since;  // time at which it was first seen
  };

  std::shared_ptr<Claims> claims_;
  std::chrono::milliseconds lease_;
  std::string worker_;
  uint64_t offset_;                         // start of its search for chunks left behind
  std::mutex mutex_;                        // guards the members below
  std::map<std::string, Sign> signs_;       // of other workers, by name
  std::map<std::string, int> generations_;  // of names: the first with a possibly live owner
  std::optional<std::set<int64_t>> finished_;
  std::set<int64_t> given_;  // chunks that `next` returned
  bool is_drawn_ = false;    // every chunk is or was taken

  std::mutex life_;
  std::condition_variable end_of_life_;
  bool ends_ = false;
  std::thread heart_;
};

}  // namespace crais
