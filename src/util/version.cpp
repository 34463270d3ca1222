#include "util/version.h"

#include <torch/version.h>

namespace crais {

std::string crais_version() { return CRAIS_VERSION; }
std::string libtorch_version() { return TORCH_VERSION; }

}  // namespace crais
