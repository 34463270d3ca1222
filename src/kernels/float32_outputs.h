// The forward pass through the last layer, in float32.
#pragma once

#include "kernels/products.h"

namespace crais {
namespace {

/// Inputs of the last layer in the form of `multiply_outputs`: unchanged.
struct OutputInputs {
  OutputInputs(const PackedLayer& /*layer*/, const Vec* x, int64_t /*vectors*/, Vec* /*workspace*/)
      : units(x) {}
  const Vec* units;
};

/// Floats of workspace for `inputs` inputs.
inline int64_t outputs_workspace(int64_t /*inputs*/) { return 0; }

/// Computes outputs [first, first + count), in the form of `multiply`.
template <int N>
void multiply_outputs(const PackedLayer& layer, int64_t first, int64_t count,
                      const OutputInputs& in, Vec* out) {
  multiply<N>(layer, first, count, in.units, out);
}

/// False: inputs are not rounded, so the gradient need not correct the value.
inline bool outputs_round(const PackedLayer& /*layer*/) { return false; }
inline Vec missed(const PackedLayer& /*layer*/, const Vec* /*units*/, const Vec* /*grad*/,
                  int64_t /*vectors*/) {
  return Vec{};
}

}  // namespace
}  // namespace crais
