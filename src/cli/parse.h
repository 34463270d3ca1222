// Values of flags with a meaning: devices, ranges, times, shards.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <limits>
#include <string>

#include "evaluation/chunks.h"

namespace crais {

/// Parses "auto" (CUDA if there is a GPU, else the CPU), "cpu", "cuda" or "cuda:N", or another
/// device of this process. Throws Error: kArgument for any other text; kNoDevice that lists the
/// devices for a missing GPU.
c10::Device parse_device(const std::string& text);

/// Indices begin, begin + 1, ..., end - 1.
struct IndexRange {
  static constexpr int64_t kOpenEnd = std::numeric_limits<int64_t>::max();
  int64_t begin = 0;
  int64_t end = kOpenEnd;

  /// The range with its open end closed. Throws Error kArgument if it reaches beyond `size`. In the
  /// message, `what` names the flag and `things` the images.
  IndexRange within(int64_t size, const std::string& what, const std::string& things) const;
  int64_t size() const { return end - begin; }
};

/// Parses "A:B" (A included, B not), "A:" or ":B". Throws Error kArgument that names `what` for any
/// other text.
IndexRange parse_range(const std::string& text, const std::string& what);

/// Parses "55m", "2h", "90s", "1h30m", "2d", and Slurm's HH:MM:SS and D-HH:MM:SS. Returns seconds,
/// at least one. Throws Error kArgument that names `what` for any other text.
int64_t parse_duration(const std::string& text, const std::string& what);

/// Parses "i/N" with 1 <= i <= N. Throws Error kArgument that names `what` for any other text.
Shard parse_shard(const std::string& text, const std::string& what);

}  // namespace crais
