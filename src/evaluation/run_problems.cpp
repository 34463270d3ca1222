#include "evaluation/run_problems.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include "evaluation/chunk_memory.h"
#include "evaluation/result_store.h"
#include "evaluation/work_queue.h"
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

/// Those of the run that is extended. A chunk that was not full is left out: it is another now.
std::map<int64_t, ChunkResult> earlier_chunks(const ResultStore& store, const Chunks& chunks,
                                              const ProblemSource& problems) {
  std::map<int64_t, ChunkResult> found = store.read_earlier_chunks();
  for (auto it = found.begin(); it != found.end();) {
    const int64_t c = it->first;
    const bool same = c < chunks.count() &&
                      it->second.indices == indices_of(problems, chunks.begin(c), chunks.end(c));
    it = same ? std::next(it) : found.erase(it);
  }
  return found;
}

/// What the run shares: as stored, or tuned on the first problems and then stored.
TunedEstimator ready(const ProblemSource& problems, const Estimator& estimator,
                     const RunOptions& options, std::optional<TunedState> stored) {
  const int64_t num_pilots = estimator.num_pilots(problems.count);
  const auto pilots = problems.make(0, num_pilots);
  const EstimateOptions& asked = estimator.options();
  if (!stored && estimator.anneals()) {
    if (asked.pilot_chains) require_pilot_chains(*asked.pilot_chains, num_pilots, pilots->dim());
    const int64_t together = std::min(asked.chunk, problems.count);
    if (!asked.resampling.empty()) require_chains_together(asked.chains, together, pilots->dim());
    if (!asked.budget) require_weights(asked.chains, together);
  }
  if (stored) return estimator.restore(std::move(*stored), *pilots);
  TunedEstimator tuned = estimator.tune(*pilots, problems.count);
  if (options.store) options.store->write_state(tuned.state());
  return tuned;
}

bool all_finished(const ResultStore& store, const Chunks& chunks) {
  return static_cast<int64_t>(store.finished().size()) >= chunks.count();
}

/// Reads every chunk, where all are there and it falls to this worker to report.
void report_if_leading(RunResults& results, const RunShape& shape, const RunOptions& options,
                       const WorkQueue::Stop& stop) {
  const ResultStore& store = *options.store;
  if (stop()) return;
  if (!all_finished(store, shape.chunks))
    throw no_input_error((store.folder() / "chunks").string() +
                         ": a chunk that was finished is gone");
  if (options.queue->lead(
          "report", [&] { return store.has_report(); }, stop)) {
    store.remove_leftovers();
    results.chunks = store.read_chunks(shape);
  } else if (store.has_report()) {
    options.queue->clear();
  }
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
  RunResults results;
  const EstimateOptions& asked = estimator.options();
  const RunShape shape{chunks, asked.methods, asked.repeats,
                       indices_of(problems, 0, problems.count)};
  if (options.store && !options.queue) results.chunks = options.store->read_chunks(shape);
  std::vector<int64_t> missing;
  for (int64_t c = 0; c < chunks.count(); ++c) {
    if (!options.shard.holds(c)) continue;
    const auto done = results.chunks.find(c);
    if (done == results.chunks.end())
      missing.push_back(c);
    else if (options.observer)
      options.observer->chunk(done->second);
  }
  std::mutex mutex;
  std::atomic<bool> stopped{false};
  const auto stop = [&] { return stopped || (options.observer && options.observer->stop()); };
  auto stored = options.store ? options.store->read_state() : std::nullopt;
  // One worker tunes, the others wait for what it stores.
  if (options.queue && !stored &&
      !options.queue->lead(
          "plan", [&] { return options.store->has_state(); }, stop)) {
    stored = options.store->read_state();
    if (!stored) return results;  // stopped
  }
  const bool is_complete = options.queue ? all_finished(*options.store, chunks) : missing.empty();
  const bool extends = options.store && options.store->extends();
  if (is_complete && stored && !extends) {
    results.state = std::move(*stored);
    if (options.queue) report_if_leading(results, shape, options, stop);
    return results;
  }
  std::map<int64_t, ChunkResult> earlier;
  if (extends) {
    earlier = earlier_chunks(*options.store, chunks, problems);
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
      const auto there = earlier.find(c);
      const ChunkResult* kept = there == earlier.end() ? nullptr : &there->second;
      result = kept && kept->has_chains(tuned.num_chains())
                   ? *kept
                   : tuned.estimate(c, *problems.make(begin, end), kept);
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
    if (!options.queue) results.chunks.emplace(c, std::move(result));
  };
  if (!options.queue) {
    parallel_for(
        static_cast<int64_t>(missing.size()), options.threads,
        [&](int64_t i) { compute(missing[static_cast<size_t>(i)]); }, stop);
    return results;
  }
  const auto next = [&] {
    return options.queue->next(
        chunks.count(), [&] { return options.store->finished(); }, stop);
  };
  parallel_while(next, options.threads, compute, stop);
  report_if_leading(results, shape, options, stop);
  return results;
}

}  // namespace crais
