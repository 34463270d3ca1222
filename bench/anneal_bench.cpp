// anneal_bench [DEVICE] [ROUNDS [LATENT HIDDEN IMAGES CHAINS STEPS]]: annealed importance sampling
// end to end from the encoder, in units of its (STEPS + 1) evaluations' matrix products. 50
// latents, 200 hidden units, 128 images with 16 chains and 64 temperatures where no numbers say
// otherwise. A table, then JSON.
#include <c10/core/GradMode.h>
#include <stdlib.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <cstdio>

#include "core/rng.h"
#include "kernels/fused_decoder.h"
#include "samplers/blocks.h"
#include "samplers/recorder.h"
#include "targets/decoder_posterior.h"
#include "yardstick.h"

namespace crais::bench {
namespace {

constexpr double kStepSize = 0.15;

/// AIS as a typical script has it. Nothing is remembered: the weight's increment takes two forward
/// passes, either end of the leapfrog step a forward and a backward one, the acceptance two more
/// forward: 6 forward and 2 backward a transition.
at::Tensor script_ais(const ScriptPosterior& target, const AffineMap& base, int64_t chains,
                      int64_t steps, at::Generator& rng) {
  const at::Tensor m = base.loc().unsqueeze(1), s = base.matrix().diagonal(0, 1, 2).unsqueeze(1);
  const auto randn = [&] {
    return at::empty({target.num_problems(), chains, target.dim()}).normal_(0, 1, rng);
  };
  const auto log_f = [&](const at::Tensor& z, double beta) {
    const at::Tensor log_q =
        (-0.5 * ((z - m) / s).square() - s.log() - 0.5 * std::log(2 * M_PI)).sum(-1);
    return (1 - beta) * log_q + beta * target.log_density(z);
  };
  const auto grad = [&](const at::Tensor& z, double beta) {
    const at::Tensor leaf = z.detach().requires_grad_(true);
    return torch::autograd::grad({log_f(leaf, beta).sum()}, {leaf})[0];
  };
  at::Tensor z = m + s * randn(), log_w = at::zeros({target.num_problems(), chains});
  for (int64_t t = 1; t <= steps; ++t) {
    const double beta = double(t) / double(steps), before = double(t - 1) / double(steps);
    log_w = log_w + (log_f(z, beta) - log_f(z, before)).detach();
    const at::Tensor start = randn() / s;
    const at::Tensor step = kStepSize * s * s;
    const at::Tensor half = start + 0.5 * kStepSize * grad(z, beta);
    const at::Tensor moved = z + step * half;
    const at::Tensor end = half + 0.5 * kStepSize * grad(moved, beta);
    const auto kinetic = [&](const at::Tensor& p) { return 0.5 * (p * s).square().sum(-1); };
    const at::Tensor log_ratio =
        log_f(moved, beta) - kinetic(end) - log_f(z, beta) + kinetic(start);
    const at::Tensor accepted = at::rand(log_ratio.sizes(), rng).log() < log_ratio.detach();
    z = at::where(accepted.unsqueeze(-1), moved, z);
  }
  return log_w;
}

}  // namespace
}  // namespace crais::bench

int main(int argc, char** argv) {
  using namespace crais;
  using namespace crais::bench;
  Arguments arguments = arguments_of(argc, argv, 7);
  if (arguments.numbers.size() != 5) arguments.numbers = {50, 200, 128, 16, 64};
  const int64_t hidden = arguments.numbers[1], num_images = arguments.numbers[2];
  const int64_t chains = arguments.numbers[3], steps = arguments.numbers[4];
  VaeArchitecture architecture;
  architecture.latent = arguments.numbers[0];
  architecture.hidden = {hidden, hidden};
  const Vae vae = make_vae(architecture, 1).to(arguments.device, at::kFloat);
  at::Generator rng = make_generator(1, arguments.device);
  const at::Tensor images = simulate(vae, num_images, rng).images;
  const DecoderPosterior aten(vae, images, {}, nullptr), fused(vae, images);
  const auto cheap = fused.with_forces(at::kBFloat16);  // what force_dtype "auto" takes if it pays
  const AffineMap base = [&] {
    const c10::NoGradGuard no_grad;
    return *fused.amortised_base();
  }();
  const auto path = PathRegistry::instance().make("path", "geometric");
  const auto rule = ScheduleRegistry::instance().make("schedule", "linear", ScheduleOptions{steps});
  const auto transition = TransitionRegistry::instance().make("kernel", "hmc", TransitionOptions{});
  const Plan plan = freeze(*rule, kStepSize);
  const auto anneal_with = [&](const Target& target) {
    anneal_in_blocks(Problem(borrow(target), base), *path, plan, *transition, chains, rng);
  };
  GemmFloor floor(vae.decoder, num_images * chains);
  const at::Tensor z =
      base.to_z(at::empty({num_images, chains, fused.dim()}, images.options()).normal_(0, 1, rng));
  const auto repeat = [&](const auto& once) {
    const c10::NoGradGuard no_grad;
    for (int64_t i = 0; i <= steps; ++i) once();
  };
  const auto evaluations_of = [&](const Target& target) { repeat([&] { target.evaluate(z); }); };
  std::vector<Contender> contenders = {{"floor", [&] { repeat([&] { floor.run(); }); }},
                                       {"anneal, aten", [&] { anneal_with(aten); }}};
  const ScriptPosterior script(vae, images);
  if (arguments.device.is_cpu()) {
    contenders.push_back({"script", [&] { script_ais(script, base, chains, steps, rng); }});
    contenders.push_back({"anneal, " + fused.evaluator(), [&] { anneal_with(fused); }});
    contenders.push_back({"its evaluations alone", [&] { evaluations_of(fused); }});
    if (fused.forces_pay(at::kBFloat16)) {
      contenders.push_back({"anneal, " + chosen_evaluator(), [&] { anneal_with(*cheap); }});
      contenders.push_back({"its evaluations alone", [&] { evaluations_of(*cheap); }});
    }
  } else if (make_recorder(rng)) {
    contenders.push_back({"anneal without graphs", [&] {
                            ::setenv("CRAIS_CUDA_GRAPHS", "0", 1);
                            anneal_with(aten);
                            ::unsetenv("CRAIS_CUDA_GRAPHS");
                          }});
  }
  Report(arguments.device)
      .add("annealing", contenders, arguments.rounds, (steps + 1) * num_images * chains,
           double(steps + 1) * floor.flops());
}
