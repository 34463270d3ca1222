// Normalisation of groups of units, forward and back.
#pragma once

#include "kernels/fused_kernel.h"
#include "kernels/simd.h"

namespace crais {
namespace {

/// Calls `use(unit)` for each unit of a group.
template <class Use>
void for_units(const PackedNormalisation& n, int64_t group, Use use) {
  const int64_t size = n.channels / n.groups;
  for (int64_t place = 0; place < n.places; ++place)
    for (int64_t i = 0; i < size; ++i) use(place * n.channels + group * size + i);
}

/// Of a group of units x [unit][kVectors], lane by lane.
template <int64_t kVectors>
class GroupMoments {
 public:
  GroupMoments(const PackedNormalisation& n, int64_t group, const Vec* x) {
    const float share = static_cast<float>(n.groups) / static_cast<float>(n.places * n.channels);
    Vec first[kVectors] = {}, second[kVectors] = {};
    for_units(n, group, [&](int64_t unit) {
      for (int64_t v = 0; v < kVectors; ++v) first[v] += x[unit * kVectors + v];
    });
    for (int64_t v = 0; v < kVectors; ++v) {
      mean_[v] = first[v] * share;
      first[v] = Vec{};
    }
    for_units(n, group, [&](int64_t unit) {
      for (int64_t v = 0; v < kVectors; ++v) {
        const Vec apart = x[unit * kVectors + v] - mean_[v];
        first[v] += apart;
        second[v] += apart * apart;
      }
    });
    for (int64_t v = 0; v < kVectors; ++v) {
      const Vec missed = first[v] * share;  // what rounding took from the mean
      mean_[v] += missed;
      const Vec variance = second[v] * share - missed * missed;
      for (int lane = 0; lane < kLanes; ++lane)
        precision_[v][lane] = 1 / __builtin_sqrtf(variance[lane] + n.eps);
    }
  }

  Vec standardised(int64_t v, Vec x) const { return (x - mean_[v]) * precision_[v]; }
  Vec precision(int64_t v) const { return precision_[v]; }  // 1 / standard deviation

 private:
  Vec mean_[kVectors], precision_[kVectors];
};

template <int64_t kVectors>
void normalise(const PackedNormalisation& n, const Vec* x, Vec* out) {
  for (int64_t group = 0; group < n.groups; ++group) {
    const GroupMoments<kVectors> moments(n, group, x);
    for_units(n, group, [&](int64_t unit) {
      for (int64_t v = 0; v < kVectors; ++v) {
        const int64_t at = unit * kVectors + v;
        out[at] = moments.standardised(v, x[at]) * n.scale[unit] + n.shift[unit];
      }
    });
  }
}

/// x, what was normalised, becomes the gradient with respect to it; g is that of the result.
template <int64_t kVectors>
void normalise_back(const PackedNormalisation& n, const Vec* g, Vec* x) {
  const float share = static_cast<float>(n.groups) / static_cast<float>(n.places * n.channels);
  for (int64_t group = 0; group < n.groups; ++group) {
    const GroupMoments<kVectors> moments(n, group, x);
    Vec shift[kVectors] = {}, tilt[kVectors] = {};  // of the group, which its moments take away
    for_units(n, group, [&](int64_t unit) {
      for (int64_t v = 0; v < kVectors; ++v) {
        const Vec scaled = g[unit * kVectors + v] * n.scale[unit];
        shift[v] += scaled;
        tilt[v] += scaled * moments.standardised(v, x[unit * kVectors + v]);
      }
    });
    for (int64_t v = 0; v < kVectors; ++v) {
      shift[v] *= share;
      tilt[v] *= share;
    }
    for_units(n, group, [&](int64_t unit) {
      for (int64_t v = 0; v < kVectors; ++v) {
        const int64_t at = unit * kVectors + v;
        const Vec apart = g[at] * n.scale[unit] - shift[v];
        x[at] = (apart - moments.standardised(v, x[at]) * tilt[v]) * moments.precision(v);
      }
    });
  }
}

}  // namespace
}  // namespace crais
