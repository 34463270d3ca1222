// anneal_bench [ROUNDS]: annealed importance sampling end to end, 64 temperatures, 128 images with
// 16 chains, from the encoder, in units of its (64 + 1) evaluations' matrix products. One thread; a
// table, then JSON.
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "core/rng.h"
#include "kernels/fused_decoder.h"
#include "paths/power_mean.h"
#include "samplers/plan.h"
#include "targets/decoder_posterior.h"
#include "yardstick.h"

namespace crais::bench {
namespace {

constexpr int64_t kSteps = 64, kImages = 128, kChains = 16;
constexpr double kStepSize = 0.15;

/// AIS as a typical script has it. Nothing is remembered: the weight's increment takes two forward
/// passes, either end of the leapfrog step a forward and a backward one, the acceptance two more
/// forward: 6 forward and 2 backward a transition.
at::Tensor script_ais(const ScriptPosterior& target, const at::Tensor& mean, const at::Tensor& sd,
                      at::Generator& rng) {
  const auto randn = [&] { return at::empty({kImages, kChains, mean.size(1)}).normal_(0, 1, rng); };
  const at::Tensor m = mean.unsqueeze(1), s = sd.unsqueeze(1);
  const auto log_f = [&](const at::Tensor& z, double beta) {
    const at::Tensor log_q =
        (-0.5 * ((z - m) / s).square() - s.log() - 0.5 * std::log(2 * M_PI)).sum(-1);
    return (1 - beta) * log_q + beta * target.log_density(z);
  };
  const auto grad = [&](const at::Tensor& z, double beta) {
    const at::Tensor leaf = z.detach().requires_grad_(true);
    return torch::autograd::grad({log_f(leaf, beta).sum()}, {leaf})[0];
  };
  at::Tensor z = m + s * randn(), log_w = at::zeros({kImages, kChains});
  for (int64_t t = 1; t <= kSteps; ++t) {
    const double beta = double(t) / kSteps, before = double(t - 1) / kSteps;
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
  const int64_t rounds = argc > 1 ? std::atol(argv[1]) : 7;
  at::set_num_threads(1);
  if (std::getenv("CRAIS_DEFAULT_MALLOC") == nullptr) keep_freed_memory();
  const Vae vae = make_vae({}, 1);
  at::Generator rng = make_generator(1);
  const at::Tensor images = simulate(vae, kImages, rng).images;
  const AffineMap base = [&] {
    const c10::NoGradGuard no_grad;
    return *DecoderPosterior(vae, images).amortised_base();
  }();
  const auto [mean, log_var] = vae.encode(images);
  const at::Tensor center = mean.detach(), sd = (0.5 * log_var).exp().detach();

  const auto path = make_geometric_path();
  const auto rule =
      ScheduleRegistry::instance().make("schedule", "linear", ScheduleOptions{kSteps});
  const auto transition = TransitionRegistry::instance().make("kernel", "hmc", TransitionOptions{});
  const Plan plan = freeze(*rule, kStepSize);
  const ScriptPosterior script(vae, images);
  const DecoderPosterior aten(vae, images, {}, nullptr), fused(vae, images);
  const auto cheap = fused.with_forces(at::kBFloat16);  // what force_dtype "auto" takes if it pays
  const auto run = [&](const Target& target) {
    anneal(Problem(borrow(target), base), *path, plan, *transition, kChains, rng);
  };
  GemmFloor floor(vae.decoder, kImages * kChains);
  const at::Tensor z = base.to_z(at::empty({kImages, kChains, fused.dim()}).normal_(0, 1, rng));
  const auto repeat = [](const auto& once) {
    for (int64_t i = 0; i <= kSteps; ++i) once();
  };
  std::vector<Contender> contenders = {
      {"floor",
       [&] {
         const c10::NoGradGuard no_grad;
         repeat([&] { floor.run(); });
       }},
      {"script", [&] { script_ais(script, center, sd, rng); }},
      {"anneal, aten", [&] { run(aten); }},
      {"anneal, " + fused.evaluator(), [&] { run(fused); }},
      {"evaluations alone",
       [&] {
         const c10::NoGradGuard no_grad;
         repeat([&] { fused.evaluate(z); });
       }},
  };
  std::string name = "anneal, " + fused.evaluator();
  if (fused.forces_pay(at::kBFloat16)) {
    name = "anneal, " + chosen_evaluator();
    contenders.push_back({name, [&] { run(*cheap); }});
    contenders.push_back({"its evaluations alone", [&] {
                            const c10::NoGradGuard no_grad;
                            repeat([&] { cheap->evaluate(z); });
                          }});
  }
  const auto times = medians(contenders, rounds);
  const double unit = times.at("floor"), ours = times.at(name);
  const double evaluations = double((kSteps + 1) * kImages * kChains);
  nlohmann::json report = {{"machine", machine()}};
  std::printf("%s\n", machine().c_str());
  for (const Contender& contender : contenders) {
    const double time = times.at(contender.name);
    std::printf("  %-24s %8.2f ms  %7.3f us an evaluation  %7.3f (M+1) F  %6.2f of ours\n",
                contender.name.c_str(), 1e3 * time, 1e6 * time / evaluations, time / unit,
                time / ours);
    report["milliseconds"][contender.name] = 1e3 * time;
    report["floors"][contender.name] = time / unit;
  }
  std::printf("\n%s\n", report.dump(2).c_str());
}
