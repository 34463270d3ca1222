#include "samplers/score_network.h"

#include <c10/core/GradMode.h>

#include <cmath>

namespace crais {
namespace {

constexpr size_t kBlocks = 2;
constexpr auto kActivation = Activation::kElu;

}  // namespace

std::vector<std::vector<int64_t>> ScoreNetworkShape::tensor_sizes() const {
  std::vector<std::vector<int64_t>> sizes = {
      {num_steps, embedding}, {hidden, embedding}, {hidden, dim}, {hidden}};
  for (size_t block = 0; block < kBlocks; ++block)
    sizes.insert(sizes.end(), {{hidden, hidden}, {hidden}});
  sizes.insert(sizes.end(), {{dim, hidden}, {dim}});
  return sizes;
}

ScoreNetwork::ScoreNetwork(const std::vector<at::Tensor>& tensors)
    : steps_(tensors[0]), steps_weight_(tensors[1]) {
  for (size_t i = 2; i + 1 < tensors.size(); i += 2)
    layers_.push_back({tensors[i], tensors[i + 1]});
}

void ScoreNetwork::initialise(const std::vector<at::Tensor>& tensors, at::Generator& rng) {
  const c10::NoGradGuard no_grad;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.dim() == 1) {
      tensor.zero_();
    } else {
      const double limit = std::sqrt(6.0 / static_cast<double>(tensor.size(0) + tensor.size(1)));
      tensor.uniform_(-limit, limit, rng);
    }
  }
  tensors.front().normal_(0, 1, rng);
  tensors[tensors.size() - 2].zero_();
}

at::Tensor ScoreNetwork::forward(const at::Tensor& x) const {
  const int64_t num_steps = x.size(0);
  const at::Tensor shift = at::matmul(steps_, steps_weight_.t()).unsqueeze(1);
  at::Tensor hidden =
      at::linear(x.reshape({num_steps, -1, x.size(-1)}), layers_[0].weight, layers_[0].bias);
  hidden = activate(kActivation, hidden + shift);
  for (size_t i = 1; i + 1 < layers_.size(); ++i)
    hidden = hidden + activate(kActivation, at::linear(hidden, layers_[i].weight, layers_[i].bias));
  return at::linear(hidden, layers_.back().weight, layers_.back().bias).view(x.sizes());
}

}  // namespace crais
