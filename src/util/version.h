/// @file
/// What was built, and upon what.
#pragma once

#include <string>

namespace crais {

std::string crais_version();     // "0.1.0"
std::string libtorch_version();  // "2.13.0"

/// A digest of the sources that decide estimates, 16 hexadecimal digits: the same in a clone and in
/// a source archive, whatever else has changed.
std::string source_digest();

}  // namespace crais
