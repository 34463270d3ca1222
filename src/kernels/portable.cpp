// What every processor has: registers of 4 floats, 16 of them at least.
namespace crais {
constexpr int kPanelRows = 4, kTileVectors = 2;
}
#include "kernels/float32_back.h"
#include "kernels/float32_outputs.h"
//
#include "kernels/fused_impl.h"
#include "kernels/multiply_adds.h"

namespace crais {
constinit const FusedKernel kPortableKernel = {"fused-portable",     Packing::kPanels, kPanelRows,
                                               Tile::workspace_size, evaluate,         decode,
                                               multiply_adds};
}  // namespace crais
