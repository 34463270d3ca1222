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

}  // namespace crais
