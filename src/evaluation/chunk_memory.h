// How much memory chains take.
#pragma once

#include <cstdint>

namespace crais {

// What numbers of chains take at least, while they move and once their weights are kept: Error
// kArgument, naming the option, where this machine cannot have it.
void require_moving(int64_t chains, int64_t problems, int64_t dim, const char* option = "chains");
void require_weights(int64_t chains, int64_t problems, const char* option = "chains");

}  // namespace crais
