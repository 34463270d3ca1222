// 32 registers of 16 floats: 8 x 3 sums, 3 activations, the other 5 for weights.
namespace crais {
constexpr int kPanelRows = 8, kTileVectors = 3;
}
#include "kernels/float32_layers.h"
//
#include "kernels/fused_impl.h"

namespace crais {
constinit const FusedKernel kAvx512Kernel = fused_kernel("fused-avx512", /*in_fixed_point=*/false);
}  // namespace crais
