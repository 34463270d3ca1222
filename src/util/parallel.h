// Parallel loops: one thread for each chunk of work, without LibTorch's own threads.
#pragma once

#include <cstdint>
#include <functional>

namespace crais {

/// Limits LibTorch to one thread for each operation, from now on and in every thread. crais runs
/// chunks in parallel instead: that is faster at these sizes, and results do not depend on the
/// number of threads.
void use_one_thread_per_operation();

/// Limits LibTorch in this thread to one thread for each operation, for the lifetime of the object.
class OneThreadPerOperation {
 public:
  OneThreadPerOperation();
  ~OneThreadPerOperation();
  OneThreadPerOperation(const OneThreadPerOperation&) = delete;
  OneThreadPerOperation& operator=(const OneThreadPerOperation&) = delete;

 private:
  int before_;
};

/// Calls work(i) for i in [0, count), in order of i, on `threads` threads (0: one for each core).
/// No further call starts once `stop()` is true or a call has thrown. Rethrows the first exception.
void parallel_for(
    int64_t count, int64_t threads, const std::function<void(int64_t)>& work,
    const std::function<bool()>& stop = [] { return false; });

/// `threads`, or the number of cores if `threads` is 0.
int64_t resolve_threads(int64_t threads);

}  // namespace crais
