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

void require_moving(int64_t chains, int64_t problems, int64_t dim, const char* option) {
  // Position, momentum and gradient, before a move and after it, in float32.
  require_memory(bytes_of(chains, problems, 6 * 4 * dim), named(option, chains, problems));
}

void require_weights(int64_t chains, int64_t problems, const char* option) {
  constexpr int64_t kWeight = 3 * 8;  // log w, its text in the file, and a copy
  require_memory(bytes_of(chains, problems, kWeight), named(option, chains, problems));
}

void require_temperatures(int64_t steps, int64_t problems) {
  // Tensors of beta, step size and acceptance, what a pilot records beside them, and their text.
  require_memory(bytes_of(steps, 1, 4096) + bytes_of(steps, problems, 48),
                 "`steps`: " + with_commas(steps) + " temperatures");
}

}  // namespace crais
