#include "evaluation/run_problems.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include "evaluation/result_store.h"
#include "util/error.h"
#include "util/parallel.h"

namespace crais {
namespace {

std::vector<int64_t> indices_of(const ProblemSource& problems, int64_t begin, int64_t end) {
  if (!problems.indices.empty())
    return {problems.indices.begin() + begin, problems.indices.begin() + end};
  std::vector<int64_t> indices(static_cast<size_t>(end - begin));
  std::iota(indices.begin(), indices.end(), begin);
  return indices;
}

/// What the run shares: as stored, or tuned on the first problems and then stored.
TunedEstimator ready(const ProblemSource& problems, const Estimator& estimator,
                     const RunOptions& options, std::optional<TunedState> stored) {
  const auto pilots =
      problems.make(0, std::min(estimator.options().pilot_problems, problems.count));
  const PrepareReport report = [&](int64_t done, int64_t total, double objective) {
    if (options.observer) options.observer->learning(done, total, objective);
  };
  const auto training = problems.training && estimator.learns() ? problems.training() : pilots;
  if (stored) return estimator.restore(std::move(*stored), *training, report);
  TunedEstimator tuned = estimator.tune(*pilots, problems.count, report, training.get());
  if (options.store) options.store->write_state(tuned.state());
  return tuned;
}

}  // namespace

ProblemSource ProblemSource::of(std::shared_ptr<const Target> target) {
  const int64_t count = target->num_problems();
  return {count, [target = std::move(target)](int64_t begin, int64_t end) {
            return target->slice(begin, end);
          }};
}

Progressed progressed(const RunResults& results, const Chunks& chunks, const Shard& shard) {
  Progressed progress;
  for (int64_t c = 0; c < chunks.count(); ++c) {
    if (!shard.holds(c)) continue;
    const int64_t size = chunks.end(c) - chunks.begin(c);
    progress.total += size;
    if (results.chunks.count(c) > 0) progress.done += size;
  }
  return progress;
}

RunResults run_problems(const ProblemSource& problems, const Estimator& estimator,
                        const RunOptions& options) {
  const c10::NoGradGuard no_grad;
  const OneThreadPerOperation one_thread;
  const Chunks chunks{problems.count, estimator.options().chunk};
  RunResults results;
  const EstimateOptions& asked = estimator.options();
  if (options.store)
    results.chunks = options.store->read_chunks(
        {chunks, asked.methods, asked.repeats, indices_of(problems, 0, problems.count)});
  std::vector<int64_t> missing;
  for (int64_t c = 0; c < chunks.count(); ++c) {
    if (!options.shard.holds(c)) continue;
    const auto done = results.chunks.find(c);
    if (done == results.chunks.end())
      missing.push_back(c);
    else if (options.observer)
      options.observer->chunk(done->second);
  }
  auto stored = options.store ? options.store->read_state() : std::nullopt;
  if (missing.empty() && stored) {
    results.state = std::move(*stored);
    return results;
  }
  const TunedEstimator tuned = ready(problems, estimator, options, std::move(stored));
  results.state = tuned.state();

  const Progressed before = progressed(results, chunks, options.shard);
  if (options.observer) options.observer->begin(before.done, before.total);
  std::mutex mutex;
  std::atomic<bool> stopped{false};
  parallel_for(
      static_cast<int64_t>(missing.size()), options.threads,
      [&](int64_t i) {
        const c10::NoGradGuard no_grad_here;
        const int64_t c = missing[static_cast<size_t>(i)];
        const int64_t begin = chunks.begin(c), end = chunks.end(c);
        ChunkResult result;
        try {
          result = tuned.estimate(c, *problems.make(begin, end));
        } catch (const Error& error) {
          // Without an observer nobody asks whether all chunks are there.
          if (error.kind() != ErrorKind::kInterrupted || !options.observer) throw;
          stopped = true;
          return;
        }
        result.indices = indices_of(problems, begin, end);
        const std::lock_guard lock(mutex);
        if (options.store) options.store->write_chunk(result);
        if (options.observer) options.observer->chunk(result);
        results.chunks.emplace(c, std::move(result));
      },
      [&] { return stopped || (options.observer && options.observer->stop()); });
  return results;
}

}  // namespace crais
