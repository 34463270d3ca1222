/// @file
/// Versions of crais and of the LibTorch that it was built with.
#pragma once

#include <string>

namespace crais {

std::string crais_version();     // "0.1.0"
std::string libtorch_version();  // "2.13.0"

/// A digest of the sources that decide estimates: 16 hexadecimal digits. A clone and a source
/// archive with equal sources have equal digests.
std::string source_digest();

}  // namespace crais
