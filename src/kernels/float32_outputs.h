// The way forward through the last layer, in float32.
#pragma once

#include "kernels/products.h"

namespace crais {
namespace {

/// Inputs of the last layer as `multiply_outputs` takes them: as they are.
struct OutputInputs {
  OutputInputs(const PackedLayer& /*layer*/, const Vec* x, int64_t /*vectors*/, Vec* /*workspace*/)
      : units(x) {}
  const Vec* units;
};

/// Floats of workspace that so many inputs take.
inline int64_t outputs_workspace(int64_t /*inputs*/) { return 0; }

/// Outputs [first, first + count), as `multiply` has them.
template <int N>
void multiply_outputs(const PackedLayer& layer, int64_t first, int64_t count,
                      const OutputInputs& in, Vec* out) {
  multiply<N>(layer, first, count, in.units, out);
}

/// Nothing is rounded that the gradient must make up for.
inline bool outputs_round(const PackedLayer& /*layer*/) { return false; }
inline Vec missed(const PackedLayer& /*layer*/, const Vec* /*units*/, const Vec* /*grad*/,
                  int64_t /*vectors*/) {
  return Vec{};
}

}  // namespace
}  // namespace crais
