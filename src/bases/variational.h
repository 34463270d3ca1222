// What a variational base costs beyond the fit that it starts from.
#pragma once

#include <cstdint>

#include "core/target.h"

namespace crais {

constexpr int64_t kVariationalRounds = 2;  // unless told otherwise

/// Evaluations of each problem that one round takes, with so many pairs of draws.
int64_t variational_round(const Target& target, int64_t pairs = 8);

}  // namespace crais
