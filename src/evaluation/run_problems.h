/// @file
/// The one driver: pilots, tuning, chunks over threads, storing and resuming.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "evaluation/chunks.h"
#include "evaluation/estimator.h"
#include "evaluation/summary.h"

namespace crais {

class ResultStore;
class WorkQueue;

/// Problems that are made as they are needed.
struct ProblemSource {
  int64_t count = 0;
  /// The problems from `begin` to `end` - 1. Threads call it side by side.
  std::function<std::shared_ptr<const Target>(int64_t begin, int64_t end)> make;
  std::vector<int64_t> indices = {};  // of each in its data set; empty: 0, 1, ..., count - 1

  /// Those of one target, which the source shares.
  static ProblemSource of(std::shared_ptr<const Target> target);
};

/// Hears how a run goes; may be asked from any thread, never two at once but for `stop`.
///
///     class Counting : public crais::RunObserver {
///       void chunk(const crais::ChunkResult& result) override { done += result.indices.size(); }
///       bool stop() override { return done >= 1000; }
///       size_t done = 0;
///     };
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  /// So many problems of `total` were found done in the store.
  virtual void begin(int64_t /*done*/, int64_t /*total*/) {}
  /// A chunk is done, or, before `begin`, was found in the store.
  virtual void chunk(const ChunkResult& /*result*/) {}
  /// Asked between chunks; those begun are finished.
  virtual bool stop() { return false; }
};

struct RunOptions {
  int64_t threads = 1;                 // 0: one a core
  Shard shard = {};                    // the chunks that are done here
  RunObserver* observer = nullptr;     // null: nobody
  const ResultStore* store = nullptr;  // null: nothing is kept
  WorkQueue* queue = nullptr;          // null: no other worker; with one there is a store, no shard
  const RunResults* earlier = nullptr;  // of the same options: its chunks, and what it has tuned
};

/// Estimates all problems, in chunks of `estimator.options().chunk`; what the store holds is not
/// done again. A chunk is a function of options, problems and its number, so neither threads, nor
/// shards, nor an interruption change a result.
///
/// A target that throws Error kInterrupted stops the run as `stop` does, and its chunk is left out;
/// without an observer the error is thrown on.
/// While it runs LibTorch has one thread for each operation (see OneThreadPerOperation).
/// @return  the finished chunks: not all of them where `stop` held, or of another shard. Under a
///          queue all chunks for the one worker that is to report, and none for the others, which
///          return once the report is there or `stop` held.
/// Cost: in the results; summarise_method adds it up.
RunResults run_problems(const ProblemSource& problems, const Estimator& estimator,
                        const RunOptions& options = {});

/// How many problems are in chunks of the results, and how many the shard has in all.
struct Progressed {
  int64_t done = 0, total = 0;
};
Progressed progressed(const RunResults& results, const Chunks& chunks, const Shard& shard);
/// The same of all workers: chunks with these numbers are finished.
Progressed progressed(const std::set<int64_t>& finished, const Chunks& chunks);

}  // namespace crais
