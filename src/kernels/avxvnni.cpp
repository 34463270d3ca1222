// AVX2 with dot products of integers: logits and forces in fixed point.
namespace crais {
constexpr int kPanelRows = 4, kTileVectors = 3;
}
#include "kernels/fixed_back.h"
#include "kernels/fixed_outputs.h"
//
#include "kernels/fused_impl.h"
#include "kernels/multiply_adds.h"

namespace crais {
constinit const FusedKernel kAvxVnniKernel = {
    "fused-avxvnni", Packing::kFixedPoint, kPanelRows, Tile::workspace_size, evaluate,
    nullptr,         multiply_adds};
}  // namespace crais
