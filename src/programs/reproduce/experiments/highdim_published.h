// What the paper's table of high-dimensional targets says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace crais::highdim {

/// From the paper's table of high-dimensional targets: error, spread, and transitions in units of
/// one per chain, tuning and all.
struct PublishedError {
  double error, spread, cost;
};

/// Of a family and a target, "normal" (0), "mixture", "laplace", "student-t" (3); null where the
/// table has none.
const PublishedError* published(int64_t dim, const std::string& family, size_t target);

}  // namespace crais::highdim
