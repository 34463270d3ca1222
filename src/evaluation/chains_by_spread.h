/// @file
/// What pilots leave open of how many chains each problem gets.
#pragma once

#include <cstdint>

namespace crais {

/// For the error of a mean: each problem's own pilot says how many chains it gets, in proportion to
/// the spread of its weights.
struct ChainsBySpread {
  int64_t pilot_chains = 0;
  double per_spread = 0;  // chains, for a relative standard deviation of 1
};

}  // namespace crais
