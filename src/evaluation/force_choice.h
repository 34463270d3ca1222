// In what the forces of an anneal are computed: `force_dtype`.
#pragma once

#include <optional>

#include "evaluation/parts.h"

namespace crais {

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
