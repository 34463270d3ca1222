// AVX2 with 8-bit forces.
namespace crais {
constexpr int kPanelRows = 4, kTileVectors = 3;
}
#include "kernels/fixed_back.h"
#include "kernels/float32_outputs.h"
//
#include "kernels/fused_impl.h"

namespace crais {
constinit const FusedKernel kAvx2BytesKernel = fused_kernel("fused-avx2bytes", Packing::kBytesBack);
}  // namespace crais
