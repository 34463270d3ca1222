/// @file
/// Which nonlinearity stands after a network's layer. Free of ATen, for src/kernels.
#pragma once

namespace crais {

/// Elementwise, as PyTorch's of the same name with its defaults.
struct Activation {
  enum Kind {
    kIdentity,
    kTanh,
    kElu,
    kRelu,
    kLeakyRelu,
    kSoftplus,
    kSigmoid,
    // What is not monotonic, whose slope is no function of the output:
    kSilu,
    kGelu,
    kMish
  };

  constexpr Activation(Kind which = kTanh, double below = 0.01) : kind(which), leak(below) {}

  /// Whether the slope is a function of the output: else it needs the input.
  constexpr bool slope_is_of_output() const { return kind < kSilu; }

  bool operator==(const Activation&) const = default;

  Kind kind;
  double leak;  // of the leaky rectifier: its slope below 0, in [0, 1]
};

}  // namespace crais
