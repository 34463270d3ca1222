#include "evaluation/work_queue.h"

#include <algorithm>
#include <utility>

#include "evaluation/chunks.h"
#include "util/error.h"
#include "util/files.h"

namespace crais {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kFirstWait = 50ms;  // before looking at the others again; then doubled
constexpr size_t kWatched = 8;             // chunks of others that one look covers

}  // namespace

bool Claims::is_worker(const std::string& name) {
  return name.size() == 16 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

WorkQueue::WorkQueue(std::shared_ptr<Claims> claims, milliseconds lease)
    : claims_(std::move(claims)),
      lease_(lease),
      worker_(random_word()),
      offset_(std::hash<std::string>()(worker_)) {
  claims_->beat(worker_);
  heart_ = std::thread([this] { show_life(); });
}

WorkQueue::~WorkQueue() {
  {
    const std::lock_guard lock(life_);
    ends_ = true;
  }
  end_of_life_.notify_all();
  heart_.join();
  try {
    claims_->leave(worker_);
  } catch (const Error&) {  // its leases will end
  }
}

void WorkQueue::show_life() {
  std::unique_lock lock(life_);
  while (!end_of_life_.wait_for(lock, std::max(lease_ / 4, 1ms), [this] { return ends_; })) {
    lock.unlock();
    try {
      claims_->beat(worker_);
    } catch (const Error&) {  // the next request for a chunk will report it
    }
    lock.lock();
  }
}

/// True if the worker that has taken `name` has lost it. "" stands for a worker that has not yet
/// identified itself.
bool WorkQueue::has_lapsed(const std::string& worker, const std::string& name) {
  const std::string beat = claims_->last_beat(worker);
  if (beat == Claims::kGone) return true;
  const auto now = Clock::now();
  const auto [sign, is_new] = signs_.try_emplace(worker.empty() ? name : worker, Sign{beat, now});
  if (!is_new && sign->second.beat == beat) return now - sign->second.since >= lease_;
  sign->second = {beat, now};
  return false;
}

/// Takes the name, or its next generation if the owner's lease has ended.
bool WorkQueue::claim(const std::string& name) {
  for (int& generation = generations_[name];; ++generation) {
    const std::string heir = name + "." + std::to_string(generation);
    const std::string owner = claims_->take(heir, worker_);
    if (owner == worker_) return true;
    if (!has_lapsed(owner, heir)) return false;
  }
}

/// Waits. Returns false if it was stopped.
bool WorkQueue::wait(milliseconds time, const Stop& stop) const {
  const auto end = Clock::now() + std::max(time, 1ms);
  while (!stop()) {
    const auto left = end - Clock::now();
    if (left <= 0ms) return true;
    std::this_thread::sleep_for(std::min<Clock::duration>(kFirstWait, left));
  }
  return false;
}

bool WorkQueue::lead(const std::string& work, const std::function<bool()>& is_done,
                     const Stop& stop) {
  const std::lock_guard lock(mutex_);
  for (milliseconds pause = kFirstWait;; pause = std::min(2 * pause, lease_ / 8)) {
    if (is_done() || stop()) return false;
    try {
      if (claim(work)) return !is_done();
    } catch (const Error&) {
      if (is_done()) return false;  // and the worker that did it has left
      throw;
    }
    if (!wait(pause, stop)) return false;
  }
}

/// Claims a chunk. Its former owner may have finished it and left since it was looked for.
bool WorkQueue::claim(int64_t chunk, const Finished& finished) {
  const std::string name = chunk_name(chunk);
  return claim(name) && (generations_[name] == 0 || finished().count(chunk) == 0);
}

/// A chunk among those that nobody has taken.
std::optional<int64_t> WorkQueue::drawn(int64_t count, const Finished& finished) {
  while (const auto chunk = claims_->draw(count))
    if (finished_->count(*chunk) + given_.count(*chunk) == 0 && claim(*chunk, finished))
      return chunk;
  return {};
}

/// A chunk among those whose worker has died. Workers begin at different chunks, so that each chunk
/// is watched.
std::optional<int64_t> WorkQueue::left_behind(const std::vector<int64_t>& missing,
                                              const Finished& finished) {
  for (size_t i = 0; i < std::min(missing.size(), kWatched); ++i)
    if (const int64_t chunk = missing[(offset_ + i) % missing.size()]; claim(chunk, finished))
      return chunk;
  return {};
}

std::vector<int64_t> WorkQueue::missing(int64_t count) const {
  std::vector<int64_t> missing;
  for (int64_t chunk = 0; chunk < count; ++chunk)
    if (finished_->count(chunk) + given_.count(chunk) == 0) missing.push_back(chunk);
  return missing;
}

std::optional<int64_t> WorkQueue::next(int64_t count, const Finished& finished, const Stop& stop) {
  const std::lock_guard lock(mutex_);
  if (stop()) return {};  // waiting may have taken long
  std::optional<int64_t> chunk;
  try {
    if (!finished_) finished_ = finished();
    if (!is_drawn_) chunk = drawn(count, finished);
    is_drawn_ = !chunk;
    for (milliseconds pause = kFirstWait; !chunk; pause = std::min(2 * pause, lease_ / 8)) {
      finished_ = finished();
      const std::vector<int64_t> others = missing(count);
      chunk = left_behind(others, finished);
      if (!chunk && (others.empty() || !wait(pause, stop))) return {};
    }
  } catch (const Error&) {
    if (static_cast<int64_t>(finished().size()) >= count) return {};  // the others have left
    throw;
  }
  given_.insert(*chunk);
  return chunk;
}

}  // namespace crais
