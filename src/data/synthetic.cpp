// Synthetic handwriting: digits drawn as strokes, each with small random changes.
#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "core/rng.h"
#include "data/images.h"
#include "util/digest.h"
#include "util/error.h"
#include "util/memory.h"

namespace crais {
namespace {

constexpr int kSide = 28;
constexpr double kPi = 3.14159265358979323846;

struct Point {
  double x, y;
};
using Stroke = std::vector<Point>;

/// The random numbers of image `index`: no other image uses them.
class Dice {
 public:
  Dice(uint64_t seed, int64_t index)
      : stream_(derive_seed(seed, Purpose::kSynthetic, static_cast<uint64_t>(index))) {}
  double between(double low, double high) {
    return low + (high - low) * hashed_uniform(stream_, next_++);
  }
  bool chance(double probability) { return between(0, 1) < probability; }

 private:
  uint64_t stream_;
  uint64_t next_ = 0;
};

/// A part of an ellipse; angles in degrees: 0 is right, 90 is down.
Stroke arc(Point centre, double radius_x, double radius_y, double from, double to) {
  const int pieces = std::max(2, static_cast<int>(std::abs(to - from) / 20));
  Stroke stroke;
  for (int i = 0; i <= pieces; ++i) {
    const double angle = (from + (to - from) * i / pieces) * kPi / 180;
    stroke.push_back(
        {centre.x + radius_x * std::cos(angle), centre.y + radius_y * std::sin(angle)});
  }
  return stroke;
}

Stroke then(Stroke stroke, const Stroke& more) {
  stroke.insert(stroke.end(), more.begin(), more.end());
  return stroke;
}

/// The strokes of a digit in the unit square, x to the right and y down.
std::vector<Stroke> strokes_of(int digit, Dice& dice) {
  switch (digit) {
    case 0:
      return {arc({.5, .5}, dice.between(.28, .42), .5, -100, 262)};
    case 1:
      if (dice.chance(.2)) return {{{.34, .2}, {.5, 0}, {.5, 1}}, {{.32, 1}, {.68, 1}}};
      return {dice.chance(.4) ? Stroke{{.34, .2}, {.5, 0}, {.5, 1}} : Stroke{{.5, 0}, {.5, 1}}};
    case 2:
      return {then(arc({.48, .28}, .34, .28, -165, 40), {{.14, 1}, {.9, dice.between(.9, 1)}})};
    case 3:
      return {then(arc({.45, .24}, .32, .24, -150, 90), arc({.45, .74}, .37, .26, -90, 145))};
    case 4:
      if (dice.chance(.5)) return {{{.2, 0}, {.12, .55}, {.85, .5}}, {{.74, .02}, {.66, 1}}};
      return {{{.62, 0}, {.1, .66}, {.95, .66}}, {{.7, .3}, {.66, 1}}};
    case 5:
      return {then({{.85, 0}, {.28, .02}, {.2, .46}}, arc({.45, .69}, .38, .31, -130, 145))};
    case 6:
      return {then(arc({.78, .68}, .62, .68, -100, -180), arc({.49, .72}, .33, .28, 180, -175))};
    case 7:
      if (dice.chance(.25)) return {{{.12, .04}, {.88, 0}, {.4, 1}}, {{.35, .5}, {.8, .48}}};
      return {{{.12, .04}, {.88, 0}, {.66, .42}, {.42, 1}}};
    case 8:
      return {arc({.5, .25}, .28, .25, 90, 450), arc({.5, .75}, .35, .25, -90, 270)};
    default:
      return {then(arc({.47, .28}, .33, .28, 0, -355), {{.78, .55}, {dice.between(.5, .74), 1}})};
  }
}

/// A random hand: slant, rotation, stretch and bend, then MNIST's scale and position of a digit, a
/// box of 20 pixels in the middle of 28.
class Hand {
 public:
  explicit Hand(Dice& dice)
      : turn_(dice.between(-.18, .18)),
        slant_(dice.between(-.12, .42)),
        width_(dice.between(12, 18)),
        height_(dice.between(17, 20)),
        bend_x_(dice.between(-.06, .06)),
        bend_y_(dice.between(-.06, .06)),
        phase_(dice.between(0, 2 * kPi)),
        shift_({dice.between(-1, 1), dice.between(-1, 1)}),
        cos_(std::cos(turn_)),
        sin_(std::sin(turn_)) {}

  Point place(Point p) const {
    const double x = p.x - .5 + bend_x_ * std::sin(4 * p.y + phase_);
    const double y = p.y - .5 + bend_y_ * std::sin(4 * p.x + phase_);
    const double across = (x - slant_ * y) * width_, down = y * height_;
    constexpr double kCentre = (kSide - 1) / 2.0;
    return {kCentre + shift_.x + cos_ * across - sin_ * down,
            kCentre + shift_.y + sin_ * across + cos_ * down};
  }

 private:
  double turn_, slant_, width_, height_, bend_x_, bend_y_, phase_;
  Point shift_;
  double cos_, sin_;
};

using Distances = std::array<double, kSide * kSide>;  // squared, from pixels to the stroke's middle

void draw_segment(Point a, Point b, double reach, Distances& nearest) {
  const auto first = [&](double u, double v) {
    return std::max(0, static_cast<int>(std::ceil(std::min(u, v) - reach)));
  };
  const auto last = [&](double u, double v) {
    return std::min(kSide - 1, static_cast<int>(std::floor(std::max(u, v) + reach)));
  };
  const Point along{b.x - a.x, b.y - a.y};
  const double length2 = std::max(along.x * along.x + along.y * along.y, 1e-12);
  const int left = first(a.x, b.x), right = last(a.x, b.x), bottom = last(a.y, b.y);
  for (int row = first(a.y, b.y); row <= bottom; ++row) {
    for (int col = left; col <= right; ++col) {
      const double x = col - a.x, y = row - a.y;
      const double t = std::clamp((x * along.x + y * along.y) / length2, 0.0, 1.0);
      const double dx = x - t * along.x, dy = y - t * along.y;
      double& best = nearest[static_cast<size_t>(row) * kSide + static_cast<size_t>(col)];
      best = std::min(best, dx * dx + dy * dy);
    }
  }
}

/// Draws image `index` into out[784] and returns its digit.
uint8_t draw(uint64_t seed, int64_t index, uint8_t* out) {
  Dice dice(seed, index);
  const int digit = std::min(9, static_cast<int>(dice.between(0, 10)));
  const Hand hand(dice);
  const double half_width = dice.between(.35, 1.0), softness = dice.between(.9, 1.3);
  const double reach = half_width + softness;
  Distances nearest;
  nearest.fill(reach * reach);
  for (const Stroke& stroke : strokes_of(digit, dice)) {
    Point from = hand.place(stroke.front());
    for (const Point& corner : stroke) {
      const Point to = hand.place(corner);
      draw_segment(from, to, reach, nearest);
      from = to;
    }
  }
  for (size_t i = 0; i < nearest.size(); ++i) {
    const double ink = (reach - std::sqrt(nearest[i])) / softness;
    out[i] = static_cast<uint8_t>(std::lround(255 * std::clamp(ink, 0.0, 1.0)));
  }
  return static_cast<uint8_t>(digit);
}

}  // namespace

Images synthetic_images(int64_t count, uint64_t seed) {
  if (count < 1) throw argument_error("synthetic images: ", count, " asked for, 1 or more needed");
  require_memory(static_cast<double>(count) * kSide * kSide,
                 "synthetic images: " + std::to_string(count));
  Images images;
  images.rows = images.cols = kSide;
  images.pixels = at::empty({count, kSide * kSide}, at::kByte);
  images.labels = at::empty({count}, at::kByte);
  uint8_t* const pixels = images.pixels.data_ptr<uint8_t>();
  uint8_t* const labels = images.labels->data_ptr<uint8_t>();
  for (int64_t i = 0; i < count; ++i) labels[i] = draw(seed, i, pixels + i * kSide * kSide);
  images.source = "synthetic";
  images.md5 = md5(std::string_view(reinterpret_cast<const char*>(pixels),
                                    static_cast<size_t>(images.pixels.numel())));
  return images;
}

}  // namespace crais
