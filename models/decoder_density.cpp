#include "models/decoder_density.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "simd/simd_kernel.h"

namespace crais {
namespace {

/// Numbers of J [P,D,pixels] that are computed at once on the CPU, few enough to stay in a cache.
constexpr int64_t kNumbersPerJacobian = int64_t{1} << 18;

/// The factors of the Jacobians of some problems.
struct Factors {
  std::vector<at::Tensor> across;  // W^T of each layer, in the type of its product
  std::vector<at::Tensor> slopes;  // [P,outputs] of each layer; for the last, the root of W
};

/// I + J W J^T of each problem, from J [P D, pixels] in bfloat16 and the roots of W [P, pixels].
at::Tensor grams_of_bfloat16(const at::Tensor& jacobian, const at::Tensor& roots) {
  const int64_t num = roots.size(0), pixels = roots.size(1), dim = jacobian.size(0) / num;
  const at::Tensor narrow = jacobian.contiguous(), scale = roots.contiguous();
  at::Tensor grams = at::empty({num, dim, dim}, roots.options());
  at::Tensor scratch = at::empty({gram_scratch(dim, pixels)}, roots.options());
  const auto* const x = reinterpret_cast<const uint16_t*>(narrow.data_ptr<at::BFloat16>());
  for (int64_t p = 0; p < num; ++p)
    simd_kernel().gram(x + p * dim * pixels, scale.data_ptr<float>() + p * pixels, dim, pixels,
                       scratch.data_ptr<float>(), grams.data_ptr<float>() + p * dim * dim);
  grams.diagonal(0, 1, 2).add_(1);
  return grams;
}

at::Tensor gauss_newton_of(const Factors& of) {
  const int64_t num = of.slopes.front().size(0), dim = of.across.front().size(0);
  const at::ScalarType type = of.slopes.front().scalar_type();
  // Rows are (problem, latent) pairs: each layer is then one large product.
  at::Tensor jacobian = of.across.front().contiguous().repeat({num, 1, 1});
  for (size_t i = 1; i < of.across.size(); ++i) {
    jacobian.mul_(of.slopes[i - 1].unsqueeze(1));
    const at::Tensor rows = jacobian.view({num * dim, jacobian.size(2)});
    jacobian = at::mm(rows.to(of.across[i].scalar_type()), of.across[i]);
    if (i + 1 < of.across.size() || jacobian.scalar_type() == type)
      jacobian = jacobian.to(type).view({num, dim, jacobian.size(1)});
  }
  if (jacobian.scalar_type() != type) return grams_of_bfloat16(jacobian, of.slopes.back());
  jacobian.mul_(of.slopes.back().unsqueeze(1));
  return at::baddbmm(at::eye(dim, jacobian.options()), jacobian, jacobian.transpose(1, 2));
}

}  // namespace

at::Tensor log_standard_normal(const at::Tensor& z) {
  const double log_scale = 0.5 * static_cast<double>(z.size(-1)) * std::log(2.0 * M_PI);
  return -0.5 * z.square().sum(-1) - log_scale;
}

at::Tensor log_joint(const DecoderNetwork& decoder, const at::Tensor& z, const at::Tensor& x) {
  return log_standard_normal(z) + decoder.likelihood.log_prob(x, decoder.forward(z));
}

JointDensity log_joint_with_grad(const DecoderNetwork& decoder, const at::Tensor& z,
                                 const at::Tensor& x, std::optional<at::ScalarType> forces) {
  const std::vector<Layer>& layers = decoder.layers;
  std::vector<at::Tensor> slopes;
  at::Tensor output = z;
  for (const Layer& layer : layers) {
    const at::Tensor input = at::linear(output, layer.weight, layer.bias);
    output = activate(layer.activation, input);
    const bool is_linear = layer.activation == Activation::kIdentity;
    slopes.push_back(is_linear ? at::Tensor() : slope(layer.activation, input, output));
  }
  const at::Tensor value = log_standard_normal(z) + decoder.likelihood.log_prob(x, output);
  at::Tensor grad = decoder.likelihood.grad(x, output);
  for (size_t i = layers.size(); i-- > 0;) {
    if (slopes[i].defined()) grad.mul_(slopes[i]);
    grad = forces ? at::matmul(grad.to(*forces), layers[i].weight.to(*forces)).to(z.scalar_type())
                  : at::matmul(grad, layers[i].weight);
  }
  return {value, grad.sub_(z)};
}

at::Tensor gauss_newton(const DecoderNetwork& decoder, const at::Tensor& z, bool is_coarse) {
  Factors factors;
  at::Tensor hidden = z;
  for (const Layer& layer : decoder.layers) {
    const bool is_narrow = is_coarse && !factors.across.empty();
    factors.across.push_back((is_narrow ? layer.weight.to(at::kBFloat16) : layer.weight).t());
    const at::Tensor input = at::linear(hidden, layer.weight, layer.bias);
    hidden = activate(layer.activation, input);
    factors.slopes.push_back(slope(layer.activation, input, hidden));
  }
  factors.slopes.back() = decoder.likelihood.root_fisher(hidden) * factors.slopes.back();
  const int64_t block = std::max<int64_t>(
      1, (is_coarse ? 4 : 1) * kNumbersPerJacobian / (z.size(1) * hidden.size(1)));
  if (z.size(0) <= block || !z.is_cpu()) return gauss_newton_of(factors);
  std::vector<at::Tensor> parts;
  for (int64_t begin = 0; begin < z.size(0); begin += block) {
    Factors part{factors.across, {}};
    for (const at::Tensor& all : factors.slopes)
      part.slopes.push_back(all.slice(0, begin, std::min(begin + block, z.size(0))));
    parts.push_back(gauss_newton_of(part));
  }
  return at::cat(parts);
}

int64_t gauss_newton_cost(const DecoderNetwork& decoder) {
  int64_t weights = 0;
  for (const Layer& layer : decoder.layers) weights += layer.weight.numel();
  const int64_t evaluation = std::max<int64_t>(1, 2 * weights);  // a decoder has weights
  const Layer& first = decoder.layers.front();
  const int64_t dim = first.inputs();
  const int64_t jacobian = dim * (weights - first.weight.numel());
  const int64_t product = dim * dim * decoder.layers.back().outputs();
  return (jacobian + product + evaluation - 1) / evaluation;
}

}  // namespace crais
