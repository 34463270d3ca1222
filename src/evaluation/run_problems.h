/// @file
/// The driver of all runs: pilots, tuning, chunks over threads, storing and resuming.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "evaluation/chunks.h"
#include "evaluation/estimator.h"
#include "evaluation/summary.h"

namespace crais {

class ResultStore;

/// Problems that are made when they are needed.
struct ProblemSource {
  int64_t count = 0;
  /// Makes the problems from `begin` to `end` - 1. Threads call it at the same time.
  std::function<std::shared_ptr<const Target>(int64_t begin, int64_t end)> make;
  std::vector<int64_t> indices = {};  // of problems in their data set; empty: 0, 1, ..., count - 1
  std::shared_ptr<const ProblemSource> control = {};  // null: none; see evaluation/control.h

  Chunks chunks_of(int64_t size) const { return {count, size, control ? control->count : 0}; }

  /// The problems of one target, which the source shares.
  static ProblemSource of(std::shared_ptr<const Target> target);
};

/// Receives the progress of a run. Any thread may call it, but never two at once, except for
/// `stop`.
///
///     class Counting : public crais::RunObserver {
///       void chunk(const crais::ChunkResult& result) override { done += result.indices.size(); }
///       bool stop() override { return done >= 1000; }
///       size_t done = 0;
///     };
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  /// `done` problems of `total` were finished in the store.
  virtual void begin(int64_t /*done*/, int64_t /*total*/) {}
  /// A chunk is finished, or, before `begin`, was found in the store.
  virtual void chunk(const ChunkResult& /*result*/) {}
  /// Called between chunks. Return true to stop; started chunks are finished.
  virtual bool stop() { return false; }
};

struct RunOptions {
  int64_t threads = 1;                 // 0: one for each core
  Shard shard = {};                    // the chunks of this process
  RunObserver* observer = nullptr;     // null: none
  const ResultStore* store = nullptr;  // null: nothing is stored
};

/// Estimates all problems in chunks of `estimator.options().chunk`. Chunks in the store are not
/// computed again. A chunk is a function of options, problems and its number, so neither threads,
/// nor shards, nor an interruption change a result.
///
/// If a target throws Error kInterrupted, the run stops as with `stop`, without that chunk; without
/// an observer the error is rethrown. During the run LibTorch has one thread for each operation
/// (see OneThreadPerOperation).
/// @return  the finished chunks; not all of them if `stop` was true, or with a shard.
/// Cost: in the results; summarise_method adds it up.
RunResults run_problems(const ProblemSource& problems, const Estimator& estimator,
                        const RunOptions& options = {});

/// The number of problems in finished chunks, and the number in all chunks of the shard.
struct Progressed {
  int64_t done = 0, total = 0;
};
Progressed progressed(const RunResults& results, const Chunks& chunks, const Shard& shard);

/// Moves the chunks of the control from `results.chunks` to `results.control`.
void separate_control(const Chunks& chunks, RunResults& results);

}  // namespace crais
