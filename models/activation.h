/// @file
/// Which nonlinearity stands between a network's layers. Free of ATen, for src/kernels.
#pragma once

namespace crais {

enum class Activation { kTanh, kElu, kRelu, kLeakyRelu, kSoftplus };

/// Of the leaky rectifier below 0: PyTorch's default.
inline constexpr double kLeak = 0.01;

}  // namespace crais
