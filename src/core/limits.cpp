#include "core/limits.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "core/spec.h"
#include "util/error.h"
#include "util/format.h"

namespace crais {
namespace {

/// A bound as people write it: 1000000 instead of 1e+06, but 1e15.
std::string bound_text(double bound) {
  if (bound >= 0x1p63) return std::to_string(std::numeric_limits<int64_t>::max());
  const bool whole = std::abs(bound) < 1e15 && std::floor(bound) == bound;
  std::string text = whole ? fixed(bound, 0) : shortest(bound);
  if (const auto plus = text.find('+'); plus != std::string::npos) text.erase(plus, 1);
  return text;
}

std::string range_text(const Range& range) {
  const std::string low = bound_text(range.low), high = bound_text(range.high);
  if (!std::isfinite(range.high))
    return (range.low_excluded ? "must be above " : "must be at least ") + low;
  if (range.low_excluded) return "must be above " + low + " and at most " + high;
  return "must lie in [" + low + ", " + high + "]";
}

void check_text(const Range& range, double value, const std::string& text,
                const std::string& what) {
  const bool reaches = range.low_excluded ? value > range.low : value >= range.low;
  if (!reaches || value > range.high)  // NaN reaches nothing
    throw argument_error(what, ": ", range_text(range), ", not ", text);
}

}  // namespace

void check_range(const Range& range, double value, const std::string& what) {
  check_text(range, value, shortest(value), what);
}

void check_range(const Range& range, int64_t value, const std::string& what) {
  check_text(range, static_cast<double>(value), std::to_string(value), what);
  if (!std::isfinite(range.high) && value > kMostCount)
    throw argument_error(what, ": must be at most ", kMostCount, ", not ", value);
}

std::vector<std::string> choices_of(const std::string& value_name) {
  const bool is_plain =
      value_name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_|") == std::string::npos;
  if (!is_plain || value_name.find('|') == std::string::npos) return {};
  return split(value_name, '|');
}

std::string word_of(const std::string& value_name) {
  const bool is_number = value_name.find('|') == 1 && std::isupper(value_name.front()) != 0;
  return is_number ? value_name.substr(2) : "";
}

void check_choice(const std::string& value_name, const std::string& text, const std::string& what) {
  const auto choices = choices_of(value_name);
  if (!choices.empty() && std::find(choices.begin(), choices.end(), text) == choices.end())
    throw argument_error(what, ": unknown '", text, "'; choose from ", join(choices));
}

}  // namespace crais
