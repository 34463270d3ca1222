// Activations number by number, and names of tests that say which one is tested.
#pragma once

#include <algorithm>
#include <cctype>
#include <cmath>
#include <stdexcept>
#include <string>

namespace crais::testing {

/// By its definition, as parse_activation takes its name.
inline double activated(const std::string& name, double x) {
  if (name == "tanh") return std::tanh(x);
  if (name == "elu") return x > 0 ? x : std::expm1(x);
  if (name == "relu") return x > 0 ? x : 0;
  if (name == "leaky-relu") return x > 0 ? x : 0.01 * x;
  if (name == "leaky-relu:0.2") return x > 0 ? x : 0.2 * x;
  if (name == "softplus") return std::log1p(std::exp(x));
  if (name == "sigmoid") return 1 / (1 + std::exp(-x));
  if (name == "silu") return x / (1 + std::exp(-x));
  if (name == "mish") return x * std::tanh(std::log1p(std::exp(x)));
  if (name == "gelu") return 0.5 * x * std::erfc(-x / std::sqrt(2));
  throw std::logic_error("no such activation");
}

/// A text with `_` in place of what a name of GoogleTest's may not hold.
inline std::string name_of_test(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return text;
}

}  // namespace crais::testing
