#include "programs/time_limit.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace crais {
namespace {

using Clock = std::chrono::steady_clock;
const Clock::time_point kBegan = Clock::now();  // initialised when the program is loaded

}  // namespace

double seconds_of_process() { return std::chrono::duration<double>(Clock::now() - kBegan).count(); }

TimeLimit::TimeLimit(RunObserver& observer, std::optional<double> limit,
                     std::function<double()> elapsed)
    : observer_(observer), limit_(limit), elapsed_(std::move(elapsed)) {}

void TimeLimit::begin(int64_t done, int64_t total) { observer_.begin(done, total); }

void TimeLimit::chunk(const ChunkResult& result) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto started = begun_.find(std::this_thread::get_id()); started != begun_.end()) {
      longest_ = std::max(longest_, elapsed_() - started->second);
      has_advanced_ = true;
    }
  }
  observer_.chunk(result);
}

bool TimeLimit::stop() {
  if (observer_.stop()) return true;
  const double now = elapsed_();
  const std::lock_guard lock(mutex_);
  if (limit_ && now + longest_ >= *limit_) is_over_ = true;
  begun_[std::this_thread::get_id()] = now;
  return is_over_;
}

bool TimeLimit::is_over() const {
  const std::lock_guard lock(mutex_);
  return is_over_;
}

bool TimeLimit::has_advanced() const {
  const std::lock_guard lock(mutex_);
  return has_advanced_;
}

}  // namespace crais
