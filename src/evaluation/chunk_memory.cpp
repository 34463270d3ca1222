#include "evaluation/chunk_memory.h"

#include <algorithm>

#include "util/error.h"
#include "util/memory.h"

namespace crais {

int64_t chunk_memory(const ChunkShape& shape) {
  // Of an HMC move: three of the state, as many of the proposal, momenta before and after,
  // gradients, z, and what an expression holds in between.
  constexpr int64_t kStates = 14, kScalars = 20;
  constexpr int64_t kFactors = 6;  // of [D,D], while a base is fitted, in float64
  const int64_t particles =
      shape.particles * (kStates * shape.dim * shape.bytes_per_number + kScalars * 8);
  const int64_t base = kFactors * shape.problems * shape.dim * shape.dim * 8;
  return std::max(particles, base) + shape.target;
}

int64_t threads_within(int64_t limit, int64_t present, int64_t chunk, int64_t threads) {
  const int64_t fitting = (limit - present) / chunk;
  if (limit <= present || fitting < 1)
    throw argument_error("`memory_limit` " + size_text(limit) + ": the program takes " +
                         size_text(present) + " and a thread up to " + size_text(chunk) +
                         " more; ask for " + size_text(present + chunk + (int64_t{1} << 20)) +
                         ", or for a smaller `chunk`");
  return std::min(threads, fitting);
}

}  // namespace crais
