// Ranges and choices of values, and the messages for values outside them.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace crais {

/// All numbers from `low` (included or excluded) to `high`.
struct Range {
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();

  double low = -kInfinite;
  double high = kInfinite;
  bool low_excluded = false;

  static constexpr Range at_least(double low) { return {low}; }
  static constexpr Range above(double low) { return {low, kInfinite, true}; }
  static constexpr Range between(double low, double high) { return {low, high}; }
};

/// Throws Error kArgument ("WHAT: must be at least 1, not 0") if the number is outside the range.
/// If the range has no upper end, a whole number may be at most kMostCount.
void check_range(const Range& range, double value, const std::string& what);
void check_range(const Range& range, int64_t value, const std::string& what);

/// The words of a value name such as "auto|float32". Returns nothing for "N", "E|adapt" and
/// "nll[:BETA]|mse".
std::vector<std::string> choices_of(const std::string& value_name);

/// The word of a value name that allows a number or one word: "adapt" for "E|adapt". Else nothing.
std::string word_of(const std::string& value_name);

/// Throws Error kArgument if the value name lists choices and `text` is none of them.
void check_choice(const std::string& value_name, const std::string& text, const std::string& what);

}  // namespace crais
