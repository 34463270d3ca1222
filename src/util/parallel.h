// Work over cores: one chunk a thread, LibTorch's own threads off.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace crais {

/// Gives LibTorch one thread for each operation, from now on and in every thread. Parallelism is
/// over chunks: cheaper at these sizes, and no result then depends on the number of threads.
void use_one_thread_per_operation();

/// The same while it lives, in this thread.
class OneThreadPerOperation {
 public:
  OneThreadPerOperation();
  ~OneThreadPerOperation();
  OneThreadPerOperation(const OneThreadPerOperation&) = delete;
  OneThreadPerOperation& operator=(const OneThreadPerOperation&) = delete;

 private:
  int before_;
};

/// Calls work(i) for i in [0, count), in order of i, on `threads` threads (0: one a core).
/// Stops handing out work once `stop()` holds or a call has thrown; rethrows the first exception.
void parallel_for(
    int64_t count, int64_t threads, const std::function<void(int64_t)>& work,
    const std::function<bool()>& stop = [] { return false; });

/// The same for what `next()` gives on each thread, until it gives nothing.
void parallel_while(
    const std::function<std::optional<int64_t>()>& next, int64_t threads,
    const std::function<void(int64_t)>& work,
    const std::function<bool()>& stop = [] { return false; });

/// `threads`, or the number of cores for 0.
int64_t resolve_threads(int64_t threads);

}  // namespace crais
