// The numbers that tables show, by name.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "programs/reproduce/cells.h"
#include "programs/reproduce/words.h"

namespace crais {

/// What a row compares its variant with.
struct Comparison {
  at::Tensor truth;                      // [] or [N], nats; undefined if it is not known
  bool has_images = false;               // repetitions are seeds; else seeds and problems
  int64_t choosing = 0;                  // repetitions that only chose the setting
  bool upper = false;                    // of the upper bounds
  at::Tensor masses;                     // [M] of the modes of the target, if it has modes
  const VariantResult* first = nullptr;  // of the rows that are compared; nullptr: none
};

/// The measures of a result, NaN where there is none. All names are there for any result.
Measures measures_of(const VariantResult& result, const Comparison& with);

/// Chooses between settings whose first `choosing` repetitions choose, and the others report.
struct Choice {
  static constexpr size_t kNone = static_cast<size_t>(-1);
  size_t chosen = kNone;  // the highest mean: honest, because every estimate is a lower bound
  size_t oracle = kNone;  // the least error of the reported mean
};

/// @param values  for each setting, [S] estimates of log Z; NaN for a failed setting.
/// @return  kNone if all settings have failed.
Choice choose(const std::vector<at::Tensor>& values, int64_t choosing, double truth);

}  // namespace crais
