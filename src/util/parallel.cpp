#include "util/parallel.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace crais {

void use_one_thread_per_operation() { at::set_num_threads(1); }

OneThreadPerOperation::OneThreadPerOperation() : before_(at::get_num_threads()) {
  use_one_thread_per_operation();
}

OneThreadPerOperation::~OneThreadPerOperation() { at::set_num_threads(before_); }

int64_t resolve_threads(int64_t threads) {
  return threads > 0 ? threads : std::max<int64_t>(1, std::thread::hardware_concurrency());
}

void parallel_for(int64_t count, int64_t threads, const std::function<void(int64_t)>& work,
                  const std::function<bool()>& stop) {
  std::atomic<int64_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr failure;
  std::mutex failure_mutex;

  const auto drain = [&] {
    use_one_thread_per_operation();  // OpenMP keeps this setting per thread
    while (!failed && !stop()) {
      try {
        const int64_t i = next++;
        if (i >= count) return;
        work(i);
      } catch (...) {
        const std::lock_guard lock(failure_mutex);
        if (!failed.exchange(true)) failure = std::current_exception();
      }
    }
  };

  std::vector<std::thread> helpers;
  for (int64_t i = 1; i < std::min(count, resolve_threads(threads)); ++i)
    helpers.emplace_back(drain);
  drain();
  for (auto& helper : helpers) helper.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace crais
