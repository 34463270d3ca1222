#include "programs/reproduce/experiments/small_vae.h"

#include <c10/core/GradMode.h>

#include <cmath>
#include <string>
#include <vector>

#include "data/images.h"
#include "models/trainer.h"

namespace crais {
namespace {

/// Drawn digits of side x side pixels.
Images small_digits(int64_t side, int64_t count, uint64_t seed) {
  Images images = synthetic_images(count, seed);
  const at::Tensor grey = images.pixels.to(at::kFloat).view({count, 1, images.rows, images.cols});
  images.pixels = at::avg_pool2d(grey, images.rows / side).round().to(at::kByte).view({count, -1});
  images.rows = images.cols = side;
  return images;
}

/// log p(x) [N], nats, of binary images [N, pixels] for a VAE with two latents and Bernoulli
/// pixels.
at::Tensor integrate(const Vae& model, const at::Tensor& images, int64_t points) {
  constexpr double kReach = 7;
  constexpr int64_t kRows = 2;  // rows of the grid at once: they stay in a cache
  const Vae vae = model.to(at::kCPU, at::kDouble);
  const at::Tensor x = images.to(at::kCPU, at::kDouble);
  const at::Tensor axis = at::linspace(-kReach, kReach, points, at::kDouble);
  at::Tensor sum = at::full({x.size(0)}, -INFINITY, at::kDouble);
  for (int64_t begin = 0; begin < points; begin += kRows) {
    const at::Tensor z = at::cartesian_prod({axis.slice(0, begin, begin + kRows), axis});
    const at::Tensor logits = vae.decoder.forward(z);
    const at::Tensor of_z = -0.5 * z.square().sum(1) - at::softplus(logits).sum(1);
    const at::Tensor joint = at::addmm(of_z, x, logits.t());
    sum = at::logaddexp(sum, joint.logsumexp(1));
  }
  const double spacing = 2 * kReach / static_cast<double>(points - 1);
  return sum + std::log(spacing * spacing / (2 * M_PI));
}

}  // namespace

Vae small_vae(int64_t side, const std::vector<int64_t>& hidden) {
  VaeArchitecture architecture;
  architecture.image_rows = architecture.image_cols = side;
  architecture.latent = 2;
  architecture.hidden = hidden;
  const c10::AutoGradMode with_gradients(true);
  TrainerOptions options;
  options.epochs = 60;
  options.kl_warmup = 30;
  options.batch = 32;
  options.learning_rate = 3e-3;
  Trainer trainer(make_vae(architecture, 1), options, small_digits(side, 4000, 0),
                  small_digits(side, 500, 1));
  while (!trainer.finished()) trainer.run_epoch();
  return trainer.current();
}

at::Tensor integrated(const ExperimentOptions& options, const VaeExperiment& experiment,
                      int64_t points) {
  constexpr int64_t kPart = 500;
  const at::Tensor& pixels = experiment.images().pixels;
  std::vector<Task> tasks;
  for (int64_t begin = 0; begin < pixels.size(0); begin += kPart)
    tasks.push_back({{{"integral_of", experiment.identity()}, {"points", points}, {"begin", begin}},
                     [&, begin] {
                       const at::Tensor part = pixels.slice(0, begin, begin + kPart);
                       const at::Tensor values = integrate(experiment.vae(), part, points);
                       return nlohmann::json(std::vector<double>(
                           values.data_ptr<double>(), values.data_ptr<double>() + values.numel()));
                     }});
  std::vector<double> all;
  for (const auto& part : run_tasks(options, "integrals by " + std::to_string(points), tasks))
    for (const auto& value : part) all.push_back(value.get<double>());
  return at::tensor(all, at::kDouble);
}

}  // namespace crais
