// Base64: bytes as text.                                                             [RFC 4648]
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace crais {

/// The base64 text of the bytes, with padding.
std::string to_base64(std::string_view bytes);
/// The bytes of a base64 text. Returns nothing if to_base64 does not write `text`.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace crais
