// What a value may be, and what a message says of one that may not.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace crais {

/// All numbers from `low` (or above it) to `high`.
struct Range {
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();

  double low = -kInfinite;
  double high = kInfinite;
  bool low_excluded = false;

  static constexpr Range at_least(double low) { return {low}; }
  static constexpr Range above(double low) { return {low, kInfinite, true}; }
  static constexpr Range between(double low, double high) { return {low, high}; }
};

/// Throws Error kArgument, "WHAT: must be at least 1, not 0", for a number outside. A whole number
/// is at most kMostCount where the range has no end.
void check_range(const Range& range, double value, const std::string& what);
void check_range(const Range& range, int64_t value, const std::string& what);

/// All that a value called "auto|float32" may be. Of "N", "E|adapt" and "nll[:BETA]|mse" nothing.
std::vector<std::string> choices_of(const std::string& value_name);

/// "adapt" of "E|adapt", which is a number or this word; else nothing.
std::string word_of(const std::string& value_name);

/// Throws Error kArgument for a text that is none of the choices, if there are some.
void check_choice(const std::string& value_name, const std::string& text, const std::string& what);

}  // namespace crais
