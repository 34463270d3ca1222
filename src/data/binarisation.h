// How grey pixels become binary.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>

#include "data/images.h"

namespace crais {

/// One of: dynamic (each pixel 1 with probability grey/255, drawn anew each time), static:SEED
/// (drawn once, decided by the seed, the split's file index and the pixel alone), threshold:T (1
/// where grey > T), none (grey/255), amat (the file was binary already).
struct Binarisation {
  enum class Kind { kDynamic, kStatic, kThreshold, kNone, kAmat };
  Kind kind = Kind::kDynamic;
  uint64_t seed = 0;      // static
  int64_t threshold = 0;  // threshold
};

/// Throws Error kArgument on anything else, listing the choices.
Binarisation parse_binarisation(const std::string& text);
std::string to_string(const Binarisation& binarisation);

/// True if two data sets made this way have the same per-pixel law (dynamic and static agree;
/// so does amat, since Larochelle's files are one such draw).
bool same_law(const Binarisation& a, const Binarisation& b);

/// Pixels [N, D] uint8 to float32 [N, D] in [0, 1]. `first_index` is the file index of row 0
/// (static), `generator` is used by dynamic alone.
at::Tensor binarise(const Binarisation& binarisation, const at::Tensor& pixels, int64_t first_index,
                    at::Generator& generator);

}  // namespace crais
