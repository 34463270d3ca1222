// A convolution or its adjoint, and weighted sums of places with equal weights for all channels,
// for a tile of particles, [unit][lane].
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

void interpolate(const PackedInterpolation& map, const float* bias, int64_t vectors, const Vec* in,
                 Vec* out) {
  const int64_t width = map.channels * vectors;
  for (int64_t place = 0; place < map.places; ++place) {
    Vec* const sums = out + place * width;
    for (int64_t i = 0; i < width; ++i) sums[i] = splat(bias[i / vectors]);
    for (int64_t tap = place * map.taps; tap < (place + 1) * map.taps; ++tap) {
      const Vec* const x = in + map.inputs[tap] * width;
      for (int64_t i = 0; i < width; ++i) sums[i] += map.weight[tap] * x[i];
    }
  }
}

/// Computes `in`, the gradient with respect to the inputs, from that with respect to the outputs.
void interpolate_back(const PackedInterpolation& map, int64_t vectors, const Vec* out, Vec* in) {
  const int64_t width = map.channels * vectors;
  for (int64_t i = 0; i < map.input_places * width; ++i) in[i] = Vec{};
  for (int64_t place = 0; place < map.places; ++place) {
    const Vec* const slopes = out + place * width;
    for (int64_t tap = place * map.taps; tap < (place + 1) * map.taps; ++tap) {
      Vec* const x = in + map.inputs[tap] * width;
      for (int64_t i = 0; i < width; ++i) x[i] += map.weight[tap] * slopes[i];
    }
  }
}

}  // namespace
}  // namespace crais
