#include "evaluation/chunk_source.h"

#include <atomic>
#include <utility>
#include <vector>

#include "evaluation/work_queue.h"
#include "util/error.h"

namespace crais {
namespace {

class MissingChunks : public ChunkSource {
 public:
  explicit MissingChunks(std::vector<int64_t> missing) : missing_(std::move(missing)) {}

  int64_t left() const override { return static_cast<int64_t>(missing_.size()); }

  std::optional<int64_t> next(const Stop& /*stop*/) override {
    const size_t i = taken_++;
    return i < missing_.size() ? std::optional(missing_[i]) : std::nullopt;
  }

 private:
  std::vector<int64_t> missing_;
  std::atomic<size_t> taken_{0};
};

/// One worker tunes, and one gets all chunks to report.
class SharedChunks : public ChunkSource {
 public:
  SharedChunks(RunShape shape, const ResultStore& store, WorkQueue& queue)
      : shape_(std::move(shape)), store_(store), queue_(queue) {}

  bool tunes(const Stop& stop) override {
    return queue_.lead(
        "plan", [&] { return store_.has_state(); }, stop);
  }

  int64_t left() const override {
    return shape_.chunks.count() - static_cast<int64_t>(store_.finished().size());
  }

  std::optional<int64_t> next(const Stop& stop) override {
    return queue_.next(
        shape_.chunks.count(), [&] { return store_.finished(); }, stop);
  }

  void report(std::map<int64_t, ChunkResult>& chunks, const Stop& stop) override {
    chunks.clear();
    if (stop()) return;
    if (left() > 0)
      throw no_input_error((store_.folder() / "chunks").string() +
                           ": a chunk that was finished is gone");
    if (!queue_.lead(
            "report", [&] { return store_.has_report(); }, stop))
      return;
    store_.remove_leftovers();
    chunks = store_.read_chunks(shape_);
  }

 private:
  RunShape shape_;
  const ResultStore& store_;
  WorkQueue& queue_;
};

}  // namespace

std::unique_ptr<ChunkSource> chunk_source(const RunShape& shape, const RunOptions& options,
                                          std::map<int64_t, ChunkResult>& chunks) {
  if (options.queue) return std::make_unique<SharedChunks>(shape, *options.store, *options.queue);
  if (options.store) chunks = options.store->read_chunks(shape);
  std::vector<int64_t> missing;
  for (int64_t c = 0; c < shape.chunks.count(); ++c)
    if (options.shard.holds(c) && chunks.count(c) == 0) missing.push_back(c);
  return std::make_unique<MissingChunks>(std::move(missing));
}

}  // namespace crais
