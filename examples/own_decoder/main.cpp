// log p(x) under a decoder of your own: a torch::nn::Module, trained here on noisy sine waves.
#include <crais/crais.h>
#include <torch/torch.h>

#include <cstdio>

namespace {

constexpr int64_t kPixels = 16, kLatent = 2;

torch::nn::Sequential mlp(int64_t in, int64_t out) {
  return torch::nn::Sequential(torch::nn::Linear(in, 32), torch::nn::Tanh(),
                               torch::nn::Linear(32, out));
}

at::Tensor waves(int64_t count) {  // of any phase, with noise of sd 0.1
  const at::Tensor phase = torch::rand({count, 1}) * 2 * M_PI;
  return torch::sin(phase + torch::linspace(0, 2 * M_PI, kPixels)) +
         0.1 * torch::randn({count, kPixels});
}

}  // namespace

int main() {
  torch::manual_seed(1);
  torch::nn::Sequential encoder = mlp(kPixels, 2 * kLatent), decoder = mlp(kLatent, kPixels);
  std::vector<at::Tensor> parameters = encoder->parameters();
  for (const auto& p : decoder->parameters()) parameters.push_back(p);
  torch::optim::Adam adam(parameters, 0.005);
  for (int step = 0; step < 1500; ++step) {
    const at::Tensor x = waves(128), q = encoder->forward(x);
    const at::Tensor mean = q.slice(1, 0, kLatent), log_var = q.slice(1, kLatent);
    const at::Tensor z = mean + (0.5 * log_var).exp() * torch::randn_like(mean);
    const at::Tensor fit = (x - decoder->forward(z)).square().sum(1) / (2 * 0.2 * 0.2);
    const at::Tensor kl = 0.5 * (mean.square() + log_var.exp() - 1 - log_var).sum(1);
    adam.zero_grad();
    (fit + kl).mean().backward();
    adam.step();
  }
  for (auto& p : parameters) p.requires_grad_(false);

  const crais::DecoderTarget target(
      {.decode = [&](const at::Tensor& z) { return decoder->forward(z); },
       .latent_dim = kLatent,
       .likelihood = crais::parse_likelihood("gaussian:0.2")},
      waves(64));
  const crais::Result r = crais::estimate_log_normalizer(target, {.chains = 8, .seed = 1});
  const bool precise = r.summary.ess_mean > 0.2 && r.std_error.mean().item<double>() < 0.5;
  std::printf("64 held-out waves, base %s, 8 chains each: %s\n", r.base.c_str(),
              precise ? "log p(x) to within half a nat" : "not precise");
  std::printf("better than noise of sd 1: %s\n",
              r.value.mean().item<double>() > -22.7 ? "yes" : "no");
  return precise ? 0 : 1;
}
