#include "models/decoded_model.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <utility>

#include "util/error.h"

namespace crais {

at::Tensor fisher_weights(const Likelihood& likelihood, const at::Tensor& output) {
  if (likelihood.family == Likelihood::Family::kGaussian)
    return at::full_like(output, 1 / (likelihood.noise_sd * likelihood.noise_sd));
  const at::Tensor p = at::sigmoid(output);
  return p * (1 - p);
}

DecodedModel::DecodedModel(ModelManifest manifest, std::string where, const Likelihood& likelihood)
    : ManifestModel(std::move(manifest), std::move(where)), likelihood_(likelihood) {}

LatentModel::Density DecodedModel::joint(const at::Tensor& z, const at::Tensor& x,
                                         const at::Tensor& /*y*/) const {
  c10::AutoGradMode with_grad(true);
  const at::Tensor leaf = z.detach().requires_grad_(true);
  const double log_scale = 0.5 * static_cast<double>(z.size(1)) * std::log(2 * M_PI);
  const at::Tensor value = likelihood_.log_prob(x.flatten(1), decode(leaf).flatten(1)) -
                           0.5 * leaf.square().sum(1) - log_scale;
  return {value.detach(), torch::autograd::grad({value.sum()}, {leaf})[0]};
}

std::vector<at::Tensor> DecodedModel::call(const std::string& function,
                                           std::vector<at::Tensor> inputs) const {
  if (function == "encode") {
    const Vae::Posterior q = posterior(inputs[0]);
    return {q.mean, q.log_var};
  }
  const bool bernoulli = likelihood_.family == Likelihood::Family::kBernoulli;
  const double sd = likelihood_.noise_sd;
  const at::Tensor output = decode(inputs[0]).flatten(1);
  if (function == "output") return {output, fisher_weights(likelihood_, output)};
  if (function != "simulate") throw internal_error("a decoder has no '" + function + "'");
  const at::Tensor u = inputs[1].to(output.device());
  const at::Tensor x = bernoulli ? u.lt(at::sigmoid(output)).to(output.scalar_type())
                                 : output + sd * std::sqrt(2.0) * at::erfinv(2 * u - 1);
  std::vector<int64_t> shape = description().data_shape;
  shape.insert(shape.begin(), x.size(0));
  return {inputs[0], x.view(shape)};
}

}  // namespace crais
