// AVX-512 with integer dot products: logits and forces in fixed point.
namespace crais {
constexpr int kPanelRows = 8, kTileVectors = 3;
}
#include "kernels/fixed_layers.h"
//
#include "kernels/fused_impl.h"

namespace crais {
constinit const FusedKernel kAvx512VnniKernel =
    fused_kernel("fused-avx512vnni", /*in_fixed_point=*/true);
}  // namespace crais
