// The kernels that are tested, this processor's and the emulated one, and how far off they are.
#pragma once

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/fused_decoder.h"
#include "models/network.h"
#include "support/activations.h"

namespace crais {

/// src/kernels/avx512vnni.cpp without its instructions (tests/CMakeLists.txt).
extern const FusedKernel kEmulatedAvx512VnniKernel;

inline const std::vector<FusedKernel>& all_kernels() {
  static const std::vector<FusedKernel> kAll = [] {
    std::vector<FusedKernel> all;
    for (const FusedKernel* kernel : available_kernels()) all.push_back(*kernel);
    all.push_back(kEmulatedAvx512VnniKernel);
    all.back().name = "emulated-avx512vnni";
    return all;
  }();
  return kAll;
}

inline std::vector<std::string> names_of_kernels() {
  std::vector<std::string> names;
  for (const FusedKernel& kernel : all_kernels()) names.emplace_back(kernel.name);
  return names;
}

inline const FusedKernel& kernel_of(const std::string& name) {
  for (const FusedKernel& kernel : all_kernels())
    if (kernel.name == name) return kernel;
  throw std::logic_error("no such kernel");
}

/// Value and gradient by autograd in float64.
inline Evaluation reference(const DecoderNetwork& network, const at::Tensor& images,
                            const at::Tensor& z) {
  DecoderNetwork wide = network;
  for (Layer& layer : wide.layers) {
    layer.weight = layer.weight.to(at::kDouble);
    layer.bias = layer.bias.to(at::kDouble);
    if (auto& n = layer.normalisation) {
      n->scale = n->scale.to(at::kDouble);
      n->shift = n->shift.to(at::kDouble);
    }
  }
  const at::Tensor leaf = z.to(at::kDouble).requires_grad_();
  const at::Tensor output = wide.forward(leaf.flatten(0, 1)).view({z.size(0), z.size(1), -1});
  const at::Tensor value = wide.likelihood.log_prob(images.to(at::kDouble).unsqueeze(1), output) -
                           (0.5 * leaf.square() + 0.5 * std::log(2 * M_PI)).sum(-1);
  value.sum().backward();
  return {value.detach(), leaf.grad()};
}

/// The largest of any particle, nats.
inline double value_error(const Evaluation& found, const Evaluation& truth) {
  return (found.log_density - truth.log_density).abs().max().item<double>();
}

/// The largest error of a gradient, relative to its length.
inline double grad_error(const Evaluation& found, const Evaluation& truth) {
  const at::Tensor error = (found.grad.to(at::kDouble) - truth.grad).norm(2, {-1});
  return (error / truth.grad.norm(2, {-1})).max().item<double>();
}

}  // namespace crais
