// 32 registers of 16 floats: 8 x 3 sums, 3 activations, the other 5 for weights.
namespace crais {
constexpr int kPanelRows = 8, kTileVectors = 3;
}
#include "kernels/float32_back.h"
#include "kernels/float32_outputs.h"
//
#include "kernels/fused_impl.h"

namespace crais {
constinit const FusedKernel kAvx512Kernel = fused_kernel("fused-avx512", Packing::kPanels);
}  // namespace crais
