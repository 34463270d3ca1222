#include "kernels/gather_layout.h"

#include <algorithm>
#include <map>
#include <utility>

namespace crais {
namespace {

/// A place of the output reads a place of the input through a tap of the kernel.
struct Connection {
  int32_t output, input, tap;  // row * columns + column
};

/// The connections of each place of the output, in the order of their inputs.
using Seen = std::vector<std::vector<Connection>>;

Seen connections(const Convolution& c, bool adjoint, int64_t places) {
  // A tap of the kernel joins a place of the smaller image with a place of the larger image, in
  // both directions of the convolution.
  const Convolution::Shape &smaller = c.transposed ? c.input : c.output,
                           &larger = c.transposed ? c.output : c.input;
  Seen seen(static_cast<size_t>(places));
  const bool to_larger = c.transposed != adjoint;
  for (int64_t y = 0; y < smaller.rows; ++y)
    for (int64_t x = 0; x < smaller.columns; ++x)
      for (int64_t i = 0; i < c.kernel[0]; ++i)
        for (int64_t j = 0; j < c.kernel[1]; ++j) {
          const int64_t row = y * c.stride[0] - c.padding[0] + i * c.dilation[0],
                        column = x * c.stride[1] - c.padding[1] + j * c.dilation[1];
          if (row < 0 || row >= larger.rows || column < 0 || column >= larger.columns) continue;
          const auto small = static_cast<int32_t>(y * smaller.columns + x),
                     large = static_cast<int32_t>(row * larger.columns + column),
                     tap = static_cast<int32_t>(i * c.kernel[1] + j);
          const auto [output, input] =
              to_larger ? std::pair(large, small) : std::pair(small, large);
          seen[static_cast<size_t>(output)].push_back({output, input, tap});
        }
  for (auto& of_place : seen)
    std::sort(of_place.begin(), of_place.end(),
              [](const Connection& a, const Connection& b) { return a.input < b.input; });
  return seen;
}

/// An order in which taps of neighbouring inputs are consecutive, so that runs are long.
std::vector<int64_t> order_of_taps(const Seen& seen, int64_t taps) {
  constexpr int64_t kNone = -1;
  std::vector<int64_t> next(static_cast<size_t>(taps), kNone), before = next, order;
  for (const auto& of_place : seen)
    for (size_t i = 1; i < of_place.size(); ++i) {
      const Connection &left = of_place[i - 1], &right = of_place[i];
      if (right.input != left.input + 1) continue;
      int64_t &follows = next[static_cast<size_t>(left.tap)],
              &precedes = before[static_cast<size_t>(right.tap)];
      if (follows == kNone && precedes == kNone) follows = right.tap, precedes = left.tap;
    }
  std::vector<bool> placed(static_cast<size_t>(taps));
  const auto place_chain = [&](int64_t tap) {
    for (; tap != kNone && !placed[static_cast<size_t>(tap)];
         tap = next[static_cast<size_t>(tap)]) {
      placed[static_cast<size_t>(tap)] = true;
      order.push_back(tap);
    }
  };
  for (int64_t tap = 0; tap < taps; ++tap)
    if (before[static_cast<size_t>(tap)] == kNone) place_chain(tap);
  for (int64_t tap = 0; tap < taps; ++tap) place_chain(tap);  // cycles, if there are any
  return order;
}

/// The connections of a place as runs of neighbouring inputs through consecutive taps, counted in
/// places and taps.
std::vector<GatherRun> runs_of(const std::vector<Connection>& of_place,
                               const std::vector<int32_t>& position) {
  std::vector<GatherRun> runs;
  for (const Connection& c : of_place) {
    const int32_t tap = position[static_cast<size_t>(c.tap)];
    if (!runs.empty()) {
      GatherRun& last = runs.back();
      if (c.input == last.input + last.count && tap == last.weight + last.count) {
        ++last.count;
        continue;
      }
    }
    runs.push_back({c.input, tap, 1});
  }
  return runs;
}

/// Appends `runs`, converted from places to units.
void append(std::vector<GatherRun>& all, const std::vector<GatherRun>& runs, int32_t channels) {
  for (const GatherRun& run : runs)
    all.push_back({run.input * channels, run.weight * channels, run.count * channels});
}

}  // namespace

GatherLayout gather_layout(const Convolution& convolution, bool adjoint, int64_t panel_rows) {
  const Convolution::Shape &to = adjoint ? convolution.input : convolution.output,
                           &of = adjoint ? convolution.output : convolution.input;
  const Seen seen = connections(convolution, adjoint, to.places());
  GatherLayout layout{.taps = order_of_taps(seen, convolution.kernel[0] * convolution.kernel[1])};
  std::vector<int32_t> position(layout.taps.size());
  for (size_t i = 0; i < layout.taps.size(); ++i)
    position[static_cast<size_t>(layout.taps[i])] = static_cast<int32_t>(i);
  const auto channels = static_cast<int32_t>(to.channels), from = static_cast<int32_t>(of.channels),
             rows = static_cast<int32_t>(panel_rows);
  const int32_t panels = (channels + rows - 1) / rows;
  std::vector<std::vector<GatherRun>> runs_of_place;
  for (const auto& of_place : seen) runs_of_place.push_back(runs_of(of_place, position));

  if (4 * channels >= 3 * panels * rows) {
    for (int32_t place = 0; place < to.places(); ++place) {
      const std::vector<GatherRun>& runs = runs_of_place[static_cast<size_t>(place)];
      const auto first = static_cast<int32_t>(layout.runs.size());
      append(layout.runs, runs, from);
      for (int32_t panel = 0; panel < panels; ++panel)
        layout.tiles.push_back({panel, first, static_cast<int32_t>(runs.size()),
                                place * channels + panel * rows,
                                std::min(rows, channels - panel * rows)});
    }
    return layout;
  }

  // Places with equal taps at equal distances from their first input.
  std::map<std::vector<int32_t>, std::vector<int32_t>> alike;
  for (int32_t place = 0; place < to.places(); ++place) {
    const std::vector<GatherRun>& runs = runs_of_place[static_cast<size_t>(place)];
    std::vector<int32_t> pattern;
    for (const GatherRun& run : runs)
      pattern.insert(pattern.end(), {run.input - runs.front().input, run.weight, run.count});
    alike[pattern].push_back(place);
  }
  for (const auto& [pattern, places] : alike) {
    for (size_t begin = 0; begin < places.size(); begin += static_cast<size_t>(rows)) {
      const std::vector<GatherRun>& runs = runs_of_place[static_cast<size_t>(places[begin])];
      const auto first = static_cast<int32_t>(layout.runs.size()),
                 first_place = static_cast<int32_t>(layout.places.size());
      append(layout.runs, runs, from);
      for (size_t i = begin; i < begin + static_cast<size_t>(rows); ++i) {
        const int32_t place = places[std::min(i, places.size() - 1)];  // the last fills the tile
        const auto& own = runs_of_place[static_cast<size_t>(place)];
        const int32_t shift = own.empty() ? 0 : own.front().input - runs.front().input;
        layout.places.push_back({shift * from, place * channels});
      }
      for (int32_t channel = 0; channel < channels; ++channel)
        layout.tiles.push_back(
            {channel, first, static_cast<int32_t>(runs.size()), first_place, rows});
    }
  }
  return layout;
}

}  // namespace crais
