#include "util/base64.h"

#include <openssl/evp.h>

namespace crais {
namespace {

const unsigned char* unsigned_bytes(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // OpenSSL ends it with a NUL
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), unsigned_bytes(bytes),
                  static_cast<int>(bytes.size()));
  text.pop_back();
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string bytes(text.size() / 4 * 3, '\0');
  const int length = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                     unsigned_bytes(text), static_cast<int>(text.size()));
  if (length < 0) return {};
  // OpenSSL counts padding as zeros. Any other text that decodes to these bytes is not ours.
  const size_t padding = text.size() - (text.find_last_not_of('=') + 1);
  if (padding > 2 || bytes.size() < padding) return {};
  bytes.resize(bytes.size() - padding);
  return to_base64(bytes) == text ? std::optional(bytes) : std::nullopt;
}

}  // namespace crais
