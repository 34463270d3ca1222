// AVX2, forces of bytes. As in avx2.cpp, but activations come from the nearest cache.
#include "kernels/fused_kernel.h"

namespace crais {
constexpr Packing kPacking = Packing::kBytesBack;
constexpr int kPanelRows = 4, kTileVectors = 3;
}  // namespace crais
#include "kernels/fixed_back.h"
#include "kernels/float32_outputs.h"
//
#include "kernels/fused_impl.h"
#include "kernels/multiply_adds.h"

namespace crais {
constinit const FusedKernel kAvx2BytesKernel = {"fused-avx2bytes",    kPacking, kPanelRows,
                                                Tile::workspace_size, evaluate, multiply_adds};
}  // namespace crais
