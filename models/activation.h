/// @file
/// Which nonlinearity stands between a network's layers. Free of ATen, for src/kernels.
#pragma once

namespace crais {

enum class Activation { kTanh, kElu, kRelu, kSoftplus };

}  // namespace crais
