// Which base: `auto`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "evaluation/parts.h"

namespace crais {

struct BaseChoice {
  std::string name;          // of BaseRegistry
  std::optional<Plan> plan;  // that its pilots have made on the way
  Cost cost;                 // of fitting and trying all candidates
};

/// The first of base_candidates (mostly Laplace), unless another's estimates on pilots are clearly
/// higher (the 95% interval of the paired difference). Every estimate is a lower bound on average,
/// so the highest is the best. Where nothing is annealed, the encoder if there is one, else
/// Laplace.
///
/// A candidate that its schedule cannot bridge from (ScheduleError) is passed over; if none is left
/// the last one's error is thrown. `num_problems` are to be estimated in all: under a budget pilots
/// take a twentieth of it, and where that is too little the first candidate is taken on trust.
/// Cost: for each candidate, its base, its pilot, and as many chains again as are estimated with.
BaseChoice choose_base(const EstimatorParts& parts, const Target& target, int64_t num_problems,
                       std::optional<at::ScalarType> forces = {});

}  // namespace crais
