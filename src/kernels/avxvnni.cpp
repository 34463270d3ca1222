// AVX2 with integer dot products: logits and forces in fixed point.
namespace crais {
constexpr int kPanelRows = 4, kTileVectors = 3;
}
#include "kernels/fixed_back.h"
#include "kernels/fixed_outputs.h"
//
#include "kernels/fused_impl.h"

namespace crais {
constinit const FusedKernel kAvxVnniKernel = fused_kernel("fused-avxvnni", Packing::kFixedPoint);
}  // namespace crais
