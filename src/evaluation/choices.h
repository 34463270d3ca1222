// What pilots choose: the base `auto`, and in what the forces of an anneal are computed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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

/// What a search of the pilots for modes has seen.
enum class Rivals {
  kUnknown,  // nobody has looked
  kNone,     // one mode in every pilot
  kFew,      // several modes in some pilots, or more than the search could tell apart
  kMany,     // several modes in an eighth of the pilots or more, and the search found them all
};

/// In the order of trust: a later one has to be clearly better. Where there may be several modes
/// these are a search from several starts, widened, and the prior; else Laplace, an encoder where
/// there is one, and the prior.
std::vector<std::string> base_candidates(const Target& target);

/// The same, made to fit the run:
/// - Where pilots have many rivals, `modes` comes first, and where a budget has room for `modes`
///   but for no search of pilots. Where pilots have none, four starts are enough.
/// - A Laplace base is a tenth wider for chains of 64 temperatures and more. They have the time to
///   come back from the tails. A budget decides on the time later.
/// - Under a budget a fit costs at most two fifths of it, else a cheaper one takes its place.
/// - `variational` refines a fit, but for parts, where that costs at most a fifth of the estimate.
std::vector<std::string> base_candidates(const EstimatorParts& parts, const Target& target,
                                         int64_t num_problems, Rivals rivals);

/// What `force_dtype` comes to for problems such as `pilots`: at::kBFloat16, or nothing for forces
/// as exact as values.
///
/// `auto` takes bfloat16 where the target says that it pays and moves of pilots are accepted as
/// often as with exact forces: from the same particles, by the same random numbers, at beta = 1,
/// mean acceptance may lose 0.02 at most at each of some step sizes. It never decides whether
/// estimates are right: any force is, for the exact density accepts. Kernels with cheap forces
/// compute that density in another way, whose error depends on the weights: at these particles it
/// must be within 0.001 nats on average, of a log-density of a thousand or less.
///
/// Throws Error kArgument where `bfloat16` is asked for and the target has no such forces.
/// @param cost  what the comparison took is added to it: with either force 1 + 7 L evaluations of 4
///              particles a pilot; and where no encoder gives them bases, of fewer pilots with more
///              particles each where all would take more than 2,000 evaluations.
std::optional<at::ScalarType> choose_forces(const EstimatorParts& parts, const Target& pilots,
                                            Cost& cost);

}  // namespace crais
