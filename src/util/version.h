// What was built, and upon what.
#pragma once

#include <string>

namespace crais {

std::string crais_version();     // "0.1.0"
std::string libtorch_version();  // "2.13.0"

}  // namespace crais
