// How much memory a chunk takes, and how many threads fit into a limit.
#pragma once

#include <cstdint>

namespace crais {

/// How large a chunk is where it is largest.
struct ChunkShape {
  int64_t problems = 0;
  int64_t particles = 0;  // evaluated together, of all problems
  int64_t dim = 0;
  int64_t bytes_per_number = 4;
  int64_t target = 0;  // bytes, Target::working_memory
};

/// What a thread needs for it, bytes: an upper estimate.
int64_t chunk_memory(const ChunkShape& shape);

/// As many of `threads` as fit into `limit` bytes beside what the process has already.
/// Throws Error kArgument, saying what would be enough, if not even one does.
int64_t threads_within(int64_t limit, int64_t present, int64_t chunk, int64_t threads);

// What numbers of chains take at least, while they move and once their weights are kept: Error
// kArgument, naming the option, where this machine cannot have it.
void require_moving(int64_t chains, int64_t problems, int64_t dim, const char* option = "chains");
void require_weights(int64_t chains, int64_t problems, const char* option = "chains");

}  // namespace crais
