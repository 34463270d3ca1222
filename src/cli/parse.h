// Values of flags that stand for something: devices, ranges, times, shards.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <limits>
#include <string>

#include "evaluation/chunks.h"

namespace crais {

/// "auto" (CUDA where there is one, else the CPU), "cpu", "cuda" or "cuda:N"; or another device
/// that this process has.
/// Throws Error: kArgument for anything else; kNoDevice, saying what there is, for a missing GPU.
c10::Device parse_device(const std::string& text);

/// Indices begin, begin + 1, ..., end - 1.
struct IndexRange {
  static constexpr int64_t kOpenEnd = std::numeric_limits<int64_t>::max();
  int64_t begin = 0;
  int64_t end = kOpenEnd;

  /// The same with the open end closed.
  /// Throws Error kArgument if it reaches beyond `size`; `what` names the flag, `things` the
  /// images.
  IndexRange within(int64_t size, const std::string& what, const std::string& things) const;
  int64_t size() const { return end - begin; }
};

/// "A:B" (A included, B not), "A:" or ":B". Throws Error kArgument, naming `what`, otherwise.
IndexRange parse_range(const std::string& text, const std::string& what);

/// "55m", "2h", "90s", "1h30m", "2d", and Slurm's HH:MM:SS and D-HH:MM:SS: seconds, at least one.
/// Throws Error kArgument, naming `what`, otherwise.
int64_t parse_duration(const std::string& text, const std::string& what);

/// "i/N" with 1 <= i <= N.
/// Throws Error kArgument, naming `what`, otherwise.
Shard parse_shard(const std::string& text, const std::string& what);

}  // namespace crais
