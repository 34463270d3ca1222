// Ways to turn grey pixels into binary pixels.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>

#include "data/images.h"

namespace crais {

/// One of these ways. dynamic: each pixel is 1 with probability grey/255, drawn anew each time.
/// static:SEED: drawn once, from the seed, the split's file index and the pixel alone. threshold:T:
/// 1 if grey > T. none: grey/255. amat: the file is already binary.
struct Binarisation {
  enum class Kind { kDynamic, kStatic, kThreshold, kNone, kAmat };
  Kind kind = Kind::kDynamic;
  uint64_t seed = 0;      // static
  int64_t threshold = 0;  // threshold
};

/// Throws Error kArgument that lists the choices for any other text.
Binarisation parse_binarisation(const std::string& text);
std::string to_string(const Binarisation& binarisation);

/// True if two data sets made this way have the same law for each pixel. dynamic, static and amat
/// agree: Larochelle's files are one such draw.
bool same_law(const Binarisation& a, const Binarisation& b);

/// Pixels [N, D] uint8 to float32 [N, D] in [0, 1]. `first_index` is the file index of row 0 (used
/// by static); only dynamic uses `generator`.
at::Tensor binarise(const Binarisation& binarisation, const at::Tensor& pixels, int64_t first_index,
                    at::Generator& generator);

}  // namespace crais
