/// @file
/// The kind of activation after a layer. Free of ATen, for src/kernels.
#pragma once

namespace crais {

/// An elementwise activation, as PyTorch's of the same name with its defaults.
struct Activation {
  enum Kind {
    kIdentity,
    kTanh,
    kElu,
    kRelu,
    kLeakyRelu,
    kSoftplus,
    kSigmoid,
    // Activations that are not monotonic: their slope is not a function of the output.
    kSilu,
    kGelu,
    kMish
  };

  constexpr Activation(Kind which = kTanh, double below = 0.01) : kind(which), leak(below) {}

  /// True if the slope is a function of the output. Otherwise it needs the input.
  constexpr bool slope_is_of_output() const { return kind < kSilu; }

  bool operator==(const Activation&) const = default;

  Kind kind;
  double leak;  // slope of the leaky rectifier below 0, in [0, 1]
};

}  // namespace crais
