#include "util/format.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace crais {
namespace {

template <typename T>
std::string shortest_text(T value) {
  if (std::isnan(value)) return "nan";  // never "-nan"
  char buffer[64];
  return {buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr};
}

std::string two_digits(int64_t number) { return std::to_string(100 + number).substr(1); }

int exponent_of(double value) { return static_cast<int>(std::floor(std::log10(std::abs(value)))); }

/// The number as printf writes it, but with a decimal point in every locale.
std::string printed(double value, std::chars_format format, int digits) {
  char buffer[64];
  return {buffer, std::to_chars(buffer, buffer + sizeof(buffer), value, format, digits).ptr};
}

}  // namespace

std::string shortest(double value) { return shortest_text(value); }
std::string shortest(float value) { return shortest_text(value); }

std::string fixed(double value, int decimals) {
  if (!std::isfinite(value)) return shortest(value);
  constexpr double kMostExact = 1e15;  // a double has at most 15 exact decimal digits
  if (std::abs(value) >= kMostExact) return significant(value, 4);
  const std::string text = printed(value, std::chars_format::fixed, std::clamp(decimals, 0, 20));
  const bool negative_zero = text[0] == '-' && text.find_first_not_of("-0.") == std::string::npos;
  return negative_zero ? text.substr(1) : text;
}

std::string significant(double value, int digits) {
  if (value == 0.0 || !std::isfinite(value)) return shortest(value + 0.0);
  const int exponent = exponent_of(value);
  if (exponent >= -5 && exponent < 9) return fixed(value, std::max(0, digits - 1 - exponent));
  return printed(value, std::chars_format::scientific, digits - 1);
}

std::string with_error(double value, double error) {
  if (!std::isfinite(value) || !std::isfinite(error) || error < 0.0) return fixed(value, 2);
  int decimals = 2;
  if (error > 0.0) {
    decimals = std::clamp(1 - exponent_of(error), 0, 10);
    // Rounding can add a digit: 0.0996 becomes 0.10.
    const double rounded = std::round(error * std::pow(10.0, decimals));
    if (rounded >= 100.0 && decimals > 0) --decimals;
  }
  return fixed(value, decimals) + " +- " + fixed(error, decimals);
}

std::string duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0.0 || seconds > 1e12) return "?";
  if (seconds < 9.95) return fixed(seconds, seconds < 0.995 ? 2 : 1) + " s";
  if (seconds < 59.5) return fixed(seconds, seconds < 20.0 ? 1 : 0) + " s";
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  const int64_t minutes = whole / 60, hours = minutes / 60, days = hours / 24;
  if (hours == 0) return std::to_string(minutes) + " min " + two_digits(whole % 60) + " s";
  if (days == 0) return std::to_string(hours) + " h " + two_digits(minutes % 60) + " min";
  return std::to_string(days) + " d " + two_digits(hours % 24) + " h";
}

std::string with_commas(int64_t number) {
  std::string text = std::to_string(number);
  const int64_t first = number < 0 ? 1 : 0;
  for (int64_t place = static_cast<int64_t>(text.size()) - 3; place > first; place -= 3)
    text.insert(static_cast<size_t>(place), 1, ',');
  return text;
}

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t");
  return first == std::string::npos ? ""
                                    : text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

std::string printable(const std::string& text) {
  constexpr size_t kLongest = 200;
  std::string out;
  size_t length = 0;  // of the word
  bool is_quoted = false;
  char before = ' ';
  for (const char c : text) {
    char code[8];
    if (c == '\'' && (is_quoted || std::isalnum(static_cast<unsigned char>(before)) == 0)) {
      is_quoted = !is_quoted;
      length = 0;
    }
    before = c;
    length = c == ' ' && !is_quoted ? 0 : length + 1;
    const bool begins_character = (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    if (length == kLongest + 1 && !begins_character) --length;
    if (length == kLongest + 1) out += "...";
    if (length > kLongest) continue;
    if (static_cast<unsigned char>(c) >= ' ' && c != '\x7f')
      out += c;
    else if (c == '\n')
      out += "\\n";
    else if (std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned>(c)) > 0)
      out += code;
  }
  return out;
}

std::string shell_quoted(const std::string& word) {
  static const std::string kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  // A line break in the word would end the command that contains the word.
  const bool has_lines = word.find_first_of("\r\n") != std::string::npos;
  std::string text = has_lines ? "$'" : "'";
  for (const char c : word) {
    if (has_lines && (c == '\'' || c == '\\'))
      text += std::string("\\") + c;
    else if (c == '\'')
      text += "'\\''";
    else if (c == '\n' || c == '\r')
      text += c == '\n' ? "\\n" : "\\r";
    else
      text += c;
  }
  return text + "'";
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text.empty() ? "one number" : text;
}

}  // namespace crais
