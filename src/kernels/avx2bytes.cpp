// AVX2, forces of 8 bits.
namespace crais {
constexpr int kPanelRows = 4, kTileVectors = 3;
}
#include "kernels/fixed_back.h"
#include "kernels/float32_outputs.h"
//
#include "kernels/fused_impl.h"
#include "kernels/multiply_adds.h"

namespace crais {
constinit const FusedKernel kAvx2BytesKernel = {
    "fused-avx2bytes", Packing::kBytesBack, kPanelRows, Tile::workspace_size, evaluate, decode,
    multiply_adds};
}  // namespace crais
