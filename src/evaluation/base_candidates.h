// Which bases `auto` tries.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "evaluation/parts.h"

namespace crais {

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

}  // namespace crais
