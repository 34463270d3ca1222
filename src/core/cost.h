/// @file
/// The cost of an estimate, in evaluations of its target.
#pragma once

#include <cstdint>

namespace crais {

/// Evaluations of one particle of one problem each: `densities` counts all of them, `gradients`
/// those that also computed the gradient.
struct Cost {
  int64_t densities = 0;
  int64_t gradients = 0;

  static Cost with_gradient(int64_t count) { return {count, count}; }

  Cost& operator+=(const Cost& other) {
    densities += other.densities;
    gradients += other.gradients;
    return *this;
  }
  friend Cost operator+(Cost a, const Cost& b) { return a += b; }
  friend Cost operator*(int64_t times, const Cost& cost) {
    return {times * cost.densities, times * cost.gradients};
  }
  friend bool operator==(const Cost&, const Cost&) = default;
};

}  // namespace crais
