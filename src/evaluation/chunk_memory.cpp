#include "evaluation/chunk_memory.h"

#include <algorithm>

#include "util/error.h"
#include "util/format.h"
#include "util/memory.h"

namespace crais {
namespace {

double bytes_of(int64_t chains, int64_t problems, int64_t bytes) {
  return static_cast<double>(chains) * static_cast<double>(problems) * static_cast<double>(bytes);
}

std::string named(const char* option, int64_t chains, int64_t problems) {
  return std::string("`") + option + "`: " + with_commas(chains) + " chains of " +
         with_commas(problems) + (problems == 1 ? " problem" : " problems each");
}

}  // namespace

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

void require_moving(int64_t chains, int64_t problems, int64_t dim, const char* option) {
  // Position, momentum and gradient, before a move and after it, in float32.
  require_memory(bytes_of(chains, problems, 6 * 4 * dim), named(option, chains, problems));
}

void require_weights(int64_t chains, int64_t problems, const char* option) {
  constexpr int64_t kWeight = 3 * 8;  // log w, the file's text of it, and a copy
  require_memory(bytes_of(chains, problems, kWeight), named(option, chains, problems));
}

}  // namespace crais
