// anneal_bench [DEVICE] [ROUNDS [LATENT HIDDEN IMAGES CHAINS STEPS]]: annealed importance sampling
// end to end from the encoder, in units of its (STEPS + 1) evaluations' matrix products. 50
// latents, 200 hidden units, 128 images with 16 chains and 64 temperatures where no numbers say
// otherwise.
#include <c10/core/GradMode.h>
#include <stdlib.h>

#include "cli/program.h"
#include "core/rng.h"
#include "kernels/fused_decoder.h"
#include "samplers/blocks.h"
#include "samplers/mover.h"
#include "targets/decoder_posterior.h"
#include "yardstick.h"

namespace crais::bench {
namespace {

constexpr double kStepSize = 0.15;

int run(int argc, char** argv) {
  Arguments arguments = arguments_of(argc, argv, 7);
  if (arguments.numbers.size() != 5) arguments.numbers = {50, 200, 128, 16, 64};
  const int64_t hidden = arguments.numbers[1], num_images = arguments.numbers[2];
  const int64_t chains = arguments.numbers[3], steps = arguments.numbers[4];
  VaeArchitecture architecture{.latent = arguments.numbers[0], .hidden = {hidden, hidden}};
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
  if (arguments.device.is_cpu()) {
    contenders.push_back({"anneal, " + fused.evaluator(), [&] { anneal_with(fused); }});
    contenders.push_back({"evaluations, " + fused.evaluator(), [&] { evaluations_of(fused); }});
    if (fused.traits().forces_pay) {
      contenders.push_back({"anneal, " + chosen_evaluator(), [&] { anneal_with(*cheap); }});
      contenders.push_back({"evaluations, " + chosen_evaluator(), [&] { evaluations_of(*cheap); }});
    }
  } else if (make_recorder(rng)) {
    contenders.push_back({"anneal without graphs", [&] {
                            ::setenv("CRAIS_CUDA_GRAPHS", "0", 1);
                            anneal_with(aten);
                            ::unsetenv("CRAIS_CUDA_GRAPHS");
                          }});
  }
  report("annealing", arguments, contenders, arguments.rounds, (steps + 1) * num_images * chains,
         double(steps + 1) * floor.flops());
  return 0;
}

}  // namespace
}  // namespace crais::bench

int main(int argc, char** argv) {
  return crais::run_main("anneal_bench", [&] { return crais::bench::run(argc, argv); });
}
