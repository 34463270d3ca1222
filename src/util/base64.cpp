#include "util/base64.h"

#include <algorithm>
#include <cstdint>

namespace crais {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t start = 0; start < bytes.size(); start += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - start);
    uint32_t group = 0;  // 24 bits
    for (size_t i = 0; i < count; ++i)
      group |= uint32_t{static_cast<unsigned char>(bytes[start + i])} << (16 - 8 * i);
    for (size_t i = 0; i < 4; ++i) text += i <= count ? kDigits[group >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  const std::string_view digits = text.substr(0, text.find_last_not_of('=') + 1);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t group = 0;
  for (size_t i = 0; i < digits.size(); ++i) {
    const size_t value = kDigits.find(digits[i]);
    if (value == kDigits.npos) return {};
    group = group << 6 | static_cast<uint32_t>(value);
    const size_t bits_left = 6 * (i + 1) % 8;  // those of the next byte
    if (i % 4 != 0) bytes += static_cast<char>(group >> bits_left);
  }
  // Other lengths, padding and bits left over are what nobody has written.
  return to_base64(bytes) == text ? std::optional(bytes) : std::nullopt;
}

}  // namespace crais
