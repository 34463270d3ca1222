// Convolutions as sums that fit a register tile.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/fused_kernel.h"
#include "models/network.h"

namespace crais {

/// The order of a kernel's work: sums for `panel_rows` channels of one place at a time. If that
/// would leave much of a register tile empty, sums for one channel of `panel_rows` places with
/// equal taps.
struct GatherLayout {
  std::vector<int64_t> taps;  // in the order of the weights, [channels][taps][input channels]
  std::vector<GatherRun> runs;
  std::vector<GatherTile> tiles;
  std::vector<GatherPlace> places;  // for tiles of one channel; else empty
};

/// The layout of a convolution, or of its adjoint, whose outputs are the convolution's inputs.
/// Every place and channel of the output is in exactly one tile.
GatherLayout gather_layout(const Convolution& convolution, bool adjoint, int64_t panel_rows);

}  // namespace crais
