// Which chunks of a run fall to this process.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "evaluation/result_store.h"
#include "evaluation/run_problems.h"

namespace crais {

/// Chunks to compute: those that are missing here, or those that a queue of workers hands out.
class ChunkSource {
 public:
  using Stop = std::function<bool()>;

  virtual ~ChunkSource() = default;

  /// True if it falls to this process to tune; false once another has stored the state, or once
  /// `stop()` holds.
  virtual bool tunes(const Stop& /*stop*/) { return true; }
  /// How many nobody has finished.
  virtual int64_t left() const = 0;
  /// The next to compute, on any thread; nothing once there is none, or once `stop()` holds.
  virtual std::optional<int64_t> next(const Stop& stop) = 0;
  /// `chunks`, those that are there, become those that this process reports.
  virtual void report(std::map<int64_t, ChunkResult>& /*chunks*/, const Stop& /*stop*/) {}
};

/// Of a run of this shape. `chunks` receives those of the store that this process reports.
std::unique_ptr<ChunkSource> chunk_source(const RunShape& shape, const RunOptions& options,
                                          std::map<int64_t, ChunkResult>& chunks);

}  // namespace crais
