// For every processor: at least 16 registers of 4 floats.
namespace crais {
constexpr int kPanelRows = 4, kTileVectors = 2;
}
#include "kernels/float32_layers.h"
//
#include "kernels/fused_impl.h"

namespace crais {
constinit const FusedKernel kPortableKernel =
    fused_kernel("fused-portable", /*in_fixed_point=*/false);
}  // namespace crais
