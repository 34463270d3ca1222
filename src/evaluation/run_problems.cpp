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
#include "evaluation/control.h"
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

/// The shared state: read from the store, or tuned on the first problems and stored, with the
/// chunks of the control that tuning has computed. Nothing if `stop` says so.
std::optional<Lengthened> ready(const ProblemSource& problems, const Estimator& estimator,
                                const RunOptions& options, std::optional<TunedState> stored,
                                const std::function<bool()>& stop) {
  const EstimateOptions& settings = estimator.options();
  const int64_t num_pilots = std::min(settings.pilot_problems, problems.count);
  const auto pilots = problems.make(0, num_pilots);
  if (!stored && estimator.anneals()) {
    if (settings.pilot_chains)
      require_moving(*settings.pilot_chains, num_pilots, pilots->dim(), "pilot_chains");
    const int64_t together = std::min(settings.chunk, problems.count);
    if (!settings.resampling.empty()) require_moving(settings.chains, together, pilots->dim());
    if (!settings.budget) require_weights(settings.chains, together);
    if (settings.plan_per_problem) require_temperatures(settings.steps, together);
  }
  if (stored) return Lengthened{estimator.restore(std::move(*stored), *pilots), {}};
  std::optional<Lengthened> tuned = Lengthened{estimator.tune(*pilots, problems.count), {}};
  if (settings.error && !tuned->tuned.state().fit) {
    if (!problems.control || settings.plan_per_problem)
      throw argument_error(
          "`error` of single problems needs a control and a plan that all share; ask for `steps`");
    tuned = lengthened(tuned->tuned, problems.chunks_of(settings.chunk), problems.control->make,
                       options.threads, stop);
    if (!tuned) return {};
  }
  if (options.store && !tuned->tuned.state().is_cut)
    options.store->write_state(tuned->tuned.state());
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
    if (results.chunks.count(c) + results.control.count(c) > 0) progress.done += size;
  }
  return progress;
}

void separate_control(const Chunks& chunks, RunResults& results) {
  const auto first = results.chunks.lower_bound(chunks.first_control());
  results.control.insert(first, results.chunks.end());
  results.chunks.erase(first, results.chunks.end());
}

RunResults run_problems(const ProblemSource& problems, const Estimator& estimator,
                        const RunOptions& options) {
  const c10::NoGradGuard no_grad;
  const OneThreadPerOperation one_thread;
  const EstimateOptions& asked = estimator.options();
  const Chunks chunks = problems.chunks_of(asked.chunk);
  const RunShape shape{chunks, asked.methods, asked.repeats,
                       indices_of(problems, 0, problems.count)};
  RunResults results;
  if (options.store) results.chunks = options.store->read_chunks(shape);
  for (auto& [c, chunk] : results.chunks) chunk.is_control = chunks.is_control(c);
  std::vector<int64_t> missing;
  for (int64_t c = 0; c < chunks.count(); ++c)
    if (options.shard.holds(c) && results.chunks.count(c) == 0) missing.push_back(c);
  if (options.observer)
    for (const auto& [c, chunk] : results.chunks)
      if (options.shard.holds(c)) options.observer->chunk(chunk);
  std::mutex mutex;
  std::atomic<bool> stopped{false};
  const auto stop = [&] { return stopped || (options.observer && options.observer->stop()); };
  auto stored = options.store ? options.store->read_state() : std::nullopt;
  if (stored && missing.empty()) {
    results.state = std::move(*stored);
    separate_control(chunks, results);
    return results;
  }
  std::optional<Lengthened> found;
  try {
    found = ready(problems, estimator, options, std::move(stored), stop);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInterrupted || !options.observer) throw;
  }
  if (!found) return results;
  const TunedEstimator& tuned = found->tuned;
  results.state = tuned.state();
  if (results.state.is_cut) {
    // The last round is an estimate too, of particles that nothing else has seen.
    if (!options.observer) throw Error(ErrorKind::kInterrupted, "stopped between rounds");
    ChunkResult result;
    result.indices =
        indices_of(problems, 0, static_cast<int64_t>(results.state.rounds.last->flags.size()));
    result.runs.push_back(*results.state.rounds.last);
    result.is_cut = true;
    options.observer->chunk(result);
    results.chunks.emplace(0, std::move(result));
    return results;
  }
  const std::optional<TunedEstimator> of_control =
      problems.control ? std::optional(control_estimator(tuned)) : std::nullopt;
  require_weights(tuned.num_chains(), std::min(chunks.size, problems.count),
                  asked.budget ? "budget" : "chains");

  const Progressed before = progressed(results, chunks, options.shard);
  if (options.observer) options.observer->begin(before.done, before.total);
  const auto compute = [&](int64_t c) {
    const c10::NoGradGuard no_grad_here;
    const int64_t begin = chunks.begin(c), end = chunks.end(c);
    const bool is_control = chunks.is_control(c);
    const ProblemSource& source = is_control ? *problems.control : problems;
    ChunkResult result;
    try {
      const auto known = found->control.find(c);
      result = known != found->control.end()
                   ? std::move(known->second)
                   : (is_control ? *of_control : tuned).estimate(c, *source.make(begin, end));
    } catch (const Error& error) {
      // Without an observer, the caller expects all chunks or an error.
      if (error.kind() != ErrorKind::kInterrupted || !options.observer) throw;
      stopped = true;
      return;
    }
    result.indices = indices_of(source, begin, end);
    result.is_control = is_control;
    const std::lock_guard lock(mutex);
    if (options.store) options.store->write_chunk(result);
    if (options.observer) options.observer->chunk(result);
    results.chunks.emplace(c, std::move(result));
  };
  const auto compute_missing = [&](int64_t i) { compute(missing[static_cast<size_t>(i)]); };
  parallel_for(static_cast<int64_t>(missing.size()), options.threads, compute_missing, stop);
  separate_control(chunks, results);
  return results;
}

}  // namespace crais
