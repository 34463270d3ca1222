// AVX-512 with dot products of pairs and fours: logits in fixed point, forces in bfloat16.
namespace crais {
constexpr int kPanelRows = 8, kTileVectors = 3;
}
#include "kernels/bfloat16_back.h"
#include "kernels/fixed_outputs.h"
//
#include "kernels/fused_impl.h"
#include "kernels/multiply_adds.h"

namespace crais {
constinit const FusedKernel kAvx512Bf16Kernel = {"fused-avx512bf16", Packing::kFixedAndBfloat16,
                                                 kPanelRows,         Tile::workspace_size,
                                                 evaluate,           multiply_adds};
}  // namespace crais
