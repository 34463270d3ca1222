#include "targets/decoder_graph.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <vector>

#include "util/error.h"

namespace crais {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// A hidden layer's activation: its slope, and what that is a function of, its output or its input.
struct Activated {
  at::Tensor kept, slope;
};

at::Tensor normal_density(const at::Tensor& x) {
  return (-0.5 * x.square()).exp_().div_(std::sqrt(2 * M_PI));
}

/// d slope along d input. Undefined: 0 everywhere.
at::Tensor d_slope(Activation activation, const Activated& at, const at::Tensor& d_input) {
  const at::Tensor& kept = at.kept;
  switch (activation.kind) {
    case Activation::kTanh:
      return (kept * at.slope).mul_(-2).mul_(d_input);
    case Activation::kElu:
      return at::where(kept > 0, at::zeros_like(d_input), at.slope * d_input);
    case Activation::kIdentity:
    case Activation::kRelu:
    case Activation::kLeakyRelu:
      return {};
    case Activation::kSoftplus:
      return (1 - at.slope).mul_(at.slope).mul_(d_input);
    case Activation::kSigmoid:
      return (1 - 2 * kept).mul_(at.slope).mul_(d_input);
    case Activation::kSilu: {
      const at::Tensor s = at::sigmoid(kept);
      return (2 + kept * (1 - 2 * s)).mul_(s * (1 - s)).mul_(d_input);
    }
    case Activation::kGelu:
      return (2 - kept.square()).mul_(normal_density(kept)).mul_(d_input);
  }
  throw internal_error("unknown activation");
}

/// Saved for the backward pass: weights W_1..W_L, then of the hidden layers what `Activated` has,
/// then u_i = d log p(x | z) / d h_i, then the second derivative in the
/// decoder's output, then the gradient in z.
class DecoderGraph : public torch::autograd::Function<DecoderGraph> {
 public:
  static variable_list forward(AutogradContext* ctx, const at::Tensor& z, const at::Tensor& x,
                               const Vae& vae) {
    const std::vector<LinearLayer>& layers = vae.decoder.layers;
    const Activation activation = vae.decoder.activation;
    const Likelihood& likelihood = vae.architecture.likelihood;
    const size_t hidden = layers.size() - 1;
    variable_list weights, kept, slopes, upstream(hidden);
    weights.reserve(layers.size());
    kept.reserve(hidden);
    slopes.reserve(hidden);
    at::Tensor h = z;
    for (const LinearLayer& layer : layers) {
      weights.push_back(layer.weight);
      h = at::linear(h, layer.weight, layer.bias);
      if (weights.size() > hidden) break;
      const at::Tensor input = h;
      h = activate(activation, input);
      kept.push_back(activation.slope_is_of_output() ? h : input);
      slopes.push_back(slope(activation, input, h));
    }
    const double log_scale = 0.5 * static_cast<double>(z.size(-1)) * std::log(2.0 * M_PI);
    const at::Tensor value = likelihood.log_prob(x, h) - 0.5 * z.square().sum(-1) - log_scale;

    at::Tensor residual, curvature;
    if (likelihood.family == Likelihood::Family::kBernoulli) {
      const at::Tensor p = at::sigmoid_(h);
      residual = x - p;
      curvature = at::addcmul(-p, p, p);
    } else {
      const double precision = 1 / (likelihood.noise_sd * likelihood.noise_sd);
      residual = (x - h).mul_(precision);
      curvature = at::full({}, -precision, z.options());
    }
    at::Tensor u = at::matmul(residual, weights.back());
    for (size_t i = hidden; i > 0; --i) {
      upstream[i - 1] = u;
      u = at::matmul(u * slopes[i - 1], weights[i - 1]);
    }
    const at::Tensor grad = u - z;

    variable_list saved = weights;
    for (const variable_list& list : {kept, slopes, upstream})
      saved.insert(saved.end(), list.begin(), list.end());
    saved.insert(saved.end(), {curvature, grad});
    ctx->save_for_backward(saved);
    ctx->saved_data["kind"] = static_cast<int64_t>(activation.kind);
    ctx->saved_data["leak"] = activation.leak;
    ctx->set_materialize_grads(false);
    return {value, grad};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& cotangents) {
    TORCH_CHECK(!c10::GradMode::is_enabled(), "decoder graph: there are no third derivatives");
    const variable_list saved = ctx->get_saved_variables();
    const Activation activation(static_cast<Activation::Kind>(ctx->saved_data["kind"].toInt()),
                                ctx->saved_data["leak"].toDouble());
    const size_t hidden = (saved.size() - 3) / 4;
    const auto weight = [&](size_t i) { return saved[i]; };
    const auto hidden_at = [&](size_t i) {
      const size_t first = hidden + 1 + i;
      return Activated{saved[first], saved[first + hidden]};
    };
    const auto upstream = [&](size_t i) { return saved[3 * hidden + 1 + i]; };
    const at::Tensor& curvature = saved[saved.size() - 2];
    const at::Tensor& grad = saved.back();

    at::Tensor found;
    if (cotangents[0].defined()) found = cotangents[0].unsqueeze(-1) * grad;
    if (cotangents[1].defined()) {
      const at::Tensor& v = cotangents[1];
      variable_list tangents;  // of the activations' inputs, along v
      tangents.reserve(hidden);
      at::Tensor t = v;
      for (size_t i = 0; i < hidden; ++i) {
        tangents.push_back(at::matmul(t, weight(i).t()));
        t = tangents.back() * hidden_at(i).slope;
      }
      t = at::matmul(at::matmul(t, weight(hidden).t()).mul_(curvature), weight(hidden));
      for (size_t i = hidden; i > 0; --i) {
        t.mul_(hidden_at(i - 1).slope);
        const at::Tensor bent = d_slope(activation, hidden_at(i - 1), tangents[i - 1]);
        if (bent.defined()) t.addcmul_(bent, upstream(i - 1));
        t = at::matmul(t, weight(i - 1));
      }
      t.sub_(v);
      found = found.defined() ? found + t : t;
    }
    return {found, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor slope(Activation activation, const at::Tensor& input, const at::Tensor& output) {
  switch (activation.kind) {
    case Activation::kIdentity:
      return at::ones_like(output);
    case Activation::kTanh:
      return 1 - output.square();
    case Activation::kElu:
      return at::where(output > 0, at::ones_like(output), output + 1);
    case Activation::kRelu:
      return (output > 0).to(output.scalar_type());
    case Activation::kLeakyRelu:
      return at::where(output > 0, at::ones_like(output), at::full_like(output, activation.leak));
    case Activation::kSoftplus:
      return -at::expm1(-output);
    case Activation::kSigmoid:
      return output * (1 - output);
    case Activation::kSilu: {
      const at::Tensor s = at::sigmoid(input);
      return s * (1 + input * (1 - s));
    }
    case Activation::kGelu:
      return at::special_ndtr(input).addcmul_(input, normal_density(input));
  }
  throw internal_error("unknown activation");
}

Evaluation evaluate_decoder_with_graph(const Vae& vae, const at::Tensor& x, const at::Tensor& z) {
  const variable_list found = DecoderGraph::apply(z, x, vae);
  return {found[0], found[1]};
}

}  // namespace crais
