// A convolution or its adjoint for a tile of particles, [unit][lane].
#pragma once

#include "kernels/products.h"

namespace crais {
namespace {

/// out [channels of each place][N]: the sums, which begin with `start` [channels], or with 0 if it
/// is null. Each sum has the order of the runs in every lane.
template <int N>
void gather(const PackedGather& g, const float* start, const Vec* in, Vec* out) {
  constexpr float kZeros[kPanelRows] = {};
  for (int64_t t = 0; t < g.num_tiles; ++t) {
    const GatherTile& tile = g.tiles[t];
    const GatherRun* const runs = g.runs + tile.first_run;
    Sums<N> sums;
    if (g.places == nullptr) {
      const float* const w = g.weight + tile.panel * g.columns * kPanelRows;
      sums.start(start == nullptr ? kZeros : start + tile.panel * kPanelRows);
      for (int32_t r = 0; r < tile.num_runs; ++r) {
        const float* weight = w + int64_t{runs[r].weight} * kPanelRows;
        const Vec* x = in + int64_t{runs[r].input} * N;
        for (int32_t k = 0; k < runs[r].count; ++k)
          sums.template add<1>(weight + int64_t{k} * kPanelRows, x + int64_t{k} * N);
      }
      sums.store(out + int64_t{tile.output} * N, tile.rows);
    } else {
      const float* const w = g.weight + tile.panel * g.columns;
      const GatherPlace* const places = g.places + tile.output;
      sums.start(start == nullptr ? 0.0F : start[tile.panel]);
      int64_t shift[kPanelRows];
      for (int i = 0; i < kPanelRows; ++i) shift[i] = int64_t{places[i].shift} * N;
      for (int32_t r = 0; r < tile.num_runs; ++r) {
        const float* weight = w + runs[r].weight;
        const Vec* x = in + int64_t{runs[r].input} * N;
        for (int32_t k = 0; k < runs[r].count; ++k)
          sums.add_places(weight[k], x + int64_t{k} * N, shift);
      }
      each_sum<N>([&](int i, int v) {
        out[int64_t{places[i].output + tile.panel} * N + v] = sums.of[i][v];
      });
    }
  }
}

}  // namespace
}  // namespace crais
