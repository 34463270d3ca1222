#include "util/base64.h"

#include <cstddef>
#include <cstdint>

namespace crais {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j)
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    for (size_t j = 0; j < 4; ++j)
      out += i + j <= bytes.size() ? kDigits[group >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i + 4 <= text.size(); i += 4) {
    uint32_t group = 0;
    for (size_t j = 0; j < 4; ++j) {
      const size_t digit = text[i + j] == '=' ? 0 : kDigits.find(text[i + j]);
      if (digit == std::string_view::npos) return {};
      group = group << 6 | static_cast<uint32_t>(digit);
    }
    for (int shift : {16, 8, 0}) bytes += static_cast<char>(group >> shift & 255);
  }
  const size_t padding = text.size() - text.find_last_not_of('=') - 1;
  if (text.empty()) return bytes;
  if (padding > 2 || bytes.size() < padding) return {};
  bytes.resize(bytes.size() - padding);
  // Whatever else decodes to these bytes is not what was written.
  if (to_base64(bytes) != text) return {};
  return bytes;
}

}  // namespace crais
