// Base64: bytes as text.                                                             [RFC 4648]
#pragma once

#include <string>
#include <string_view>

namespace crais {

/// The base64 text of the bytes, with padding.
std::string to_base64(std::string_view bytes);

}  // namespace crais
