#include "evaluation/run_problems.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "evaluation/chunk_memory.h"
#include "evaluation/result_store.h"
#include "evaluation/work_queue.h"
#include "util/error.h"
#include "util/parallel.h"

namespace crais {
namespace {

/// The chunks of an earlier run that are the same in a run of this shape. A chunk that was not full
/// is left out, because it changes; so is one that was stopped.
std::map<int64_t, ChunkResult> unchanged(std::map<int64_t, ChunkResult> earlier,
                                         const RunShape& shape) {
  std::erase_if(earlier, [&](const auto& entry) {
    const auto& [c, chunk] = entry;
    if (chunk.is_cut || c >= shape.chunks.count()) return true;
    const auto first = shape.indices.begin();
    return !std::equal(chunk.indices.begin(), chunk.indices.end(), first + shape.chunks.begin(c),
                       first + shape.chunks.end(c));
  });
  return earlier;
}

/// The chunks to compute: those that are missing in this process, or those that a queue of workers
/// assigns.
class ChunkSource {
 public:
  using Stop = std::function<bool()>;

  /// `chunks` receives the stored chunks that this process reports.
  ChunkSource(RunShape shape, const RunOptions& options, std::map<int64_t, ChunkResult>& chunks)
      : shape_(std::move(shape)), store_(options.store), queue_(options.queue) {
    if (queue_) return;
    if (store_) chunks = store_->read_chunks(shape_);
    if (options.earlier) chunks = unchanged(options.earlier->chunks, shape_);
    for (int64_t c = 0; c < shape_.chunks.count(); ++c)
      if (options.shard.holds(c) && chunks.count(c) == 0) missing_.push_back(c);
  }

  /// True if this process must tune. False once another process has stored the state, or once
  /// `stop()` is true.
  bool tunes(const Stop& stop) {
    const auto is_done = [&] { return store_->has_state(); };
    return !queue_ || queue_->lead("plan", is_done, stop);
  }

  /// The number of unfinished chunks.
  int64_t left() const {
    return queue_ ? shape_.chunks.count() - static_cast<int64_t>(store_->finished().size())
                  : static_cast<int64_t>(missing_.size());
  }

  /// The next chunk to compute, for any thread; nothing once there is none, or once `stop()` is
  /// true.
  std::optional<int64_t> next(const Stop& stop) {
    const auto finished = [&] { return store_->finished(); };
    if (queue_) return queue_->next(shape_.chunks.count(), finished, stop);
    const size_t i = taken_++;
    return i < missing_.size() ? std::optional(missing_[i]) : std::nullopt;
  }

  /// Reduces `chunks` to those that this process reports: one worker reports all, the others none.
  void report(std::map<int64_t, ChunkResult>& chunks, const Stop& stop) {
    if (!queue_) return;
    chunks.clear();
    if (stop()) return;
    if (left() > 0)
      throw no_input_error((store_->folder() / "chunks").string() +
                           ": a finished chunk is missing");
    const auto is_done = [&] { return store_->has_report(); };
    if (!queue_->lead("report", is_done, stop)) return;
    store_->remove_leftovers();
    chunks = store_->read_chunks(shape_);
  }

 private:
  RunShape shape_;
  const ResultStore* store_;
  WorkQueue* queue_;
  std::vector<int64_t> missing_;
  std::atomic<size_t> taken_{0};
};

std::vector<int64_t> indices_of(const ProblemSource& problems, int64_t begin, int64_t end) {
  if (!problems.indices.empty())
    return {problems.indices.begin() + begin, problems.indices.begin() + end};
  std::vector<int64_t> indices(static_cast<size_t>(end - begin));
  std::iota(indices.begin(), indices.end(), begin);
  return indices;
}

/// The shared state: read from the store, or tuned on the first problems and stored.
TunedEstimator ready(const ProblemSource& problems, const Estimator& estimator,
                     const RunOptions& options, std::optional<TunedState> stored) {
  const int64_t num_pilots = estimator.num_pilots(problems.count);
  const auto pilots = problems.make(0, num_pilots);
  const EstimateOptions& settings = estimator.options();
  if (!stored && estimator.anneals()) {
    if (settings.pilot_chains)
      require_moving(*settings.pilot_chains, num_pilots, pilots->dim(), "pilot_chains");
    const int64_t together = std::min(settings.chunk, problems.count);
    if (!settings.resampling.empty()) require_moving(settings.chains, together, pilots->dim());
    if (!settings.budget) require_weights(settings.chains, together);
  }
  if (stored) return estimator.restore(std::move(*stored), *pilots);
  TunedEstimator tuned = estimator.tune(*pilots, problems.count);
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

Progressed progressed(const std::set<int64_t>& finished, const Chunks& chunks) {
  Progressed progress{0, chunks.problems};
  for (const int64_t c : finished)
    if (c < chunks.count()) progress.done += chunks.end(c) - chunks.begin(c);
  return progress;
}

RunResults run_problems(const ProblemSource& problems, const Estimator& estimator,
                        const RunOptions& options) {
  const c10::NoGradGuard no_grad;
  const OneThreadPerOperation one_thread;
  const Chunks chunks{problems.count, estimator.options().chunk};
  const EstimateOptions& asked = estimator.options();
  const RunShape shape{chunks, asked.methods, asked.repeats,
                       indices_of(problems, 0, problems.count)};
  RunResults results;
  ChunkSource source(shape, options, results.chunks);
  if (options.observer)
    for (const auto& [c, chunk] : results.chunks)
      if (options.shard.holds(c)) options.observer->chunk(chunk);
  std::mutex mutex;
  std::atomic<bool> stopped{false};
  const auto stop = [&] { return stopped || (options.observer && options.observer->stop()); };
  auto stored = options.store ? options.store->read_state() : std::nullopt;
  if (options.earlier) stored = options.earlier->state;
  if (!stored && !source.tunes(stop)) {
    stored = options.store->read_state();
    if (!stored) return results;  // stopped
  }
  const bool extends = options.store && options.store->extends();
  if (source.left() == 0 && stored && !extends) {
    results.state = std::move(*stored);
    source.report(results.chunks, stop);
    return results;
  }
  std::map<int64_t, ChunkResult> earlier;
  if (extends) {
    earlier = unchanged(options.store->read_earlier_chunks(), shape);
    if (stored && stored->plan && !asked.budget) stored->plan->num_particles = asked.chains;
    if (stored) options.store->write_state(*stored);
  }
  const TunedEstimator tuned = ready(problems, estimator, options, std::move(stored));
  results.state = tuned.state();
  require_weights(tuned.num_chains(), std::min(chunks.size, problems.count),
                  asked.budget       ? "budget"
                  : asked.mean_error ? "max_evaluations"
                                     : "chains");

  const Progressed before = progressed(results, chunks, options.shard);
  if (options.observer) options.observer->begin(before.done, before.total);
  const auto compute = [&](int64_t c) {
    const c10::NoGradGuard no_grad_here;
    const int64_t begin = chunks.begin(c), end = chunks.end(c);
    ChunkResult result;
    try {
      const auto entry = earlier.find(c);
      const ChunkResult* kept = entry == earlier.end() ? nullptr : &entry->second;
      result = kept && kept->has_chains(tuned.num_chains())
                   ? *kept
                   : tuned.estimate(c, *problems.make(begin, end), kept);
    } catch (const Error& error) {
      // Without an observer, the caller expects all chunks or an error.
      if (error.kind() != ErrorKind::kInterrupted || !options.observer) throw;
      stopped = true;
      return;
    }
    result.indices = indices_of(problems, begin, end);
    const std::lock_guard lock(mutex);
    if (result.is_cut) {
      if (!options.observer) throw Error(ErrorKind::kInterrupted, "stopped between rounds");
      stopped = true;
    }
    if (options.store && !result.is_cut) options.store->write_chunk(result);
    if (options.observer) options.observer->chunk(result);
    results.chunks.emplace(c, std::move(result));
  };
  parallel_while([&] { return source.next(stop); },
                 std::clamp<int64_t>(source.left(), 1, resolve_threads(options.threads)), compute,
                 stop);
  source.report(results.chunks, stop);
  return results;
}

}  // namespace crais
