// Bytes as text.                                                                     [RFC 4648]
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace crais {

/// With padding.
std::string to_base64(std::string_view bytes);
/// The bytes; none where `text` is not what to_base64 writes.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace crais
