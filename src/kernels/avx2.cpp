// 16 registers of 8 floats: 4 x 3 sums, 3 activations, 1 weight.
namespace crais {
constexpr int kPanelRows = 4, kTileVectors = 3;
}
#include "kernels/float32_layers.h"
//
#include "kernels/fused_impl.h"

namespace crais {
constinit const FusedKernel kAvx2Kernel = fused_kernel("fused-avx2", /*in_fixed_point=*/false);
}  // namespace crais
