// The memory that chains and plans take.
#pragma once

#include <cstdint>

namespace crais {

// Checks the least memory of chains, while they move and for their stored weights. Throws Error
// kArgument, which names the option, if this machine has less.
void require_moving(int64_t chains, int64_t problems, int64_t dim, const char* option = "chains");
void require_weights(int64_t chains, int64_t problems, const char* option = "chains");

// Checks the memory of `steps` temperatures, which `problems` have for themselves.
void require_temperatures(int64_t steps, int64_t problems);

}  // namespace crais
