// Digests of bytes, as lower-case hexadecimal digits. They name content; they guard no secret.
#pragma once

#include <string>
#include <string_view>

namespace crais {

/// [FIPS 180-4]
std::string sha256(std::string_view bytes);
/// For comparison with published digests.                                            [RFC 1321]
std::string md5(std::string_view bytes);

}  // namespace crais
