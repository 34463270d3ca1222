// Normalisation of groups of units, forward and backward.
//
// Each vector of lanes runs through the same code for every width of the tile: results must not
// depend on which products a compiler fuses with sums.
#pragma once

#include "kernels/fused_kernel.h"
#include "kernels/simd.h"

namespace crais {
namespace {

/// The units of one group in one vector of lanes of a tile; units are [unit][vectors].
class GroupUnits {
 public:
  GroupUnits(const PackedNormalisation& n, int64_t group, int64_t vectors, int64_t vector)
      : n_(n), first_(group * (n.channels / n.groups)), vectors_(vectors), vector_(vector) {}

  float share() const {  // the share of one unit
    return static_cast<float>(n_.groups) / static_cast<float>(n_.places * n_.channels);
  }

  /// Calls `use(unit, at)`; `at` is the index of the unit among the vectors.
  template <class Use>
  void each(Use use) const {
    const int64_t size = n_.channels / n_.groups;
    for (int64_t place = 0; place < n_.places; ++place)
      for (int64_t i = 0; i < size; ++i) {
        const int64_t unit = place * n_.channels + first_ + i;
        use(unit, unit * vectors_ + vector_);
      }
  }

 private:
  const PackedNormalisation& n_;
  int64_t first_, vectors_, vector_;
};

/// The moments of a group of units in each lane.
class GroupMoments {
 public:
  GroupMoments(const GroupUnits& group, float eps, const Vec* x) {
    Vec first = {}, second = {};
    group.each([&](int64_t /*unit*/, int64_t at) { first += x[at]; });
    mean_ = first * group.share();
    first = Vec{};
    group.each([&](int64_t /*unit*/, int64_t at) {
      const Vec apart = x[at] - mean_;
      first += apart;
      second += apart * apart;
    });
    const Vec missed = first * group.share();  // correction of the mean for rounding
    mean_ += missed;
    const Vec variance = second * group.share() - missed * missed;
    for (int lane = 0; lane < kLanes; ++lane)
      precision_[lane] = 1 / __builtin_sqrtf(variance[lane] + eps);
  }

  Vec standardised(Vec x) const { return (x - mean_) * precision_; }
  Vec precision() const { return precision_; }  // 1 / standard deviation

 private:
  Vec mean_, precision_;
};

/// Calls `use` with each group of units of each vector of lanes.
template <class Use>
void for_groups(const PackedNormalisation& n, int64_t vectors, Use use) {
  for (int64_t vector = 0; vector < vectors; ++vector)
    for (int64_t group = 0; group < n.groups; ++group) use(GroupUnits(n, group, vectors, vector));
}

inline void normalise(const PackedNormalisation& n, int64_t vectors, const Vec* x, Vec* out) {
  for_groups(n, vectors, [&](const GroupUnits& group) {
    const GroupMoments moments(group, n.eps, x);
    group.each([&](int64_t unit, int64_t at) {
      out[at] = moments.standardised(x[at]) * n.scale[unit] + n.shift[unit];
    });
  });
}

/// Replaces x, the normalised units, by the gradient with respect to the input. g is the gradient
/// with respect to the output.
inline void normalise_back(const PackedNormalisation& n, int64_t vectors, const Vec* g, Vec* x) {
  for_groups(n, vectors, [&](const GroupUnits& group) {
    const GroupMoments moments(group, n.eps, x);
    Vec shift = {}, tilt = {};  // the components of the group that its moments remove
    group.each([&](int64_t unit, int64_t at) {
      const Vec scaled = g[at] * n.scale[unit];
      shift += scaled;
      tilt += scaled * moments.standardised(x[at]);
    });
    shift *= group.share();
    tilt *= group.share();
    group.each([&](int64_t unit, int64_t at) {
      const Vec apart = g[at] * n.scale[unit] - shift;
      x[at] = (apart - moments.standardised(x[at]) * tilt) * moments.precision();
    });
  });
}

}  // namespace
}  // namespace crais
