// Convolutions as sums that a register tile takes at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/fused_kernel.h"
#include "models/network.h"

namespace crais {

/// A place of the output image sees a place of the input through a tap of the kernel.
struct Connection {
  int32_t output, input, tap;  // row * columns + column
};

/// All of a convolution, or of its adjoint, whose outputs are the convolution's inputs.
std::vector<Connection> connections(const Convolution& convolution, bool adjoint);

/// How a kernel goes through the connections: sums for `panel_rows` channels of one place at a
/// time, or, where that would leave much of a register tile empty, for one channel of `panel_rows`
/// places that see their inputs through the same taps.
struct GatherLayout {
  std::vector<int64_t> taps;  // in the order of the weights, [channels][taps][input channels]
  std::vector<GatherRun> runs;
  std::vector<GatherTile> tiles;
  std::vector<GatherPlace> places;  // of tiles of one channel; else empty
};

struct GatherSizes {
  int64_t places, channels, input_channels, taps;
};

/// Every place and channel of the output is in one tile.
GatherLayout gather_layout(const std::vector<Connection>& connections, const GatherSizes& sizes,
                           int64_t panel_rows);

}  // namespace crais
