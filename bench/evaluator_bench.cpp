// evaluator_bench [DEVICE] [ROUNDS [BATCH...]]: what one (value, gradient) of a particle costs with
// each evaluator, in units of the six matrix products it cannot do without.
#include <c10/core/GradMode.h>

#include <algorithm>

#include "cli/program.h"
#include "core/rng.h"
#include "kernels/fused_decoder.h"
#include "targets/decoder_posterior.h"
#include "yardstick.h"

namespace crais::bench {
namespace {

void measure(const Vae& vae, int64_t batch, const Arguments& arguments) {
  constexpr int64_t kParticles = 16;  // of each image
  at::Generator rng = make_generator(1, arguments.device);
  const at::Tensor images = simulate(vae, batch / kParticles, rng).images;
  const at::Tensor z =
      at::empty({batch / kParticles, kParticles, vae.architecture.latent}, images.options())
          .normal_(0, 1, rng);
  GemmFloor floor(vae.decoder, batch);
  const DecoderPosterior aten(vae, images, {}, nullptr);
  std::vector<Contender> contenders = {{"floor", [&] { floor.run(); }},
                                       {"aten", [&] { aten.evaluate(z); }},
                                       {"aten value", [&] { aten.log_density(z); }}};
  if (arguments.device.is_cpu()) {
    for (const FusedKernel* kernel : available_kernels()) {
      const std::string name = kernel->name;
      const auto target = std::make_shared<DecoderPosterior>(
          vae, images, at::Tensor(), std::make_shared<FusedDecoder>(decoder_network(vae), *kernel));
      contenders.push_back({name, [target, z] { target->evaluate(z); }});
      contenders.push_back({name + " value", [target, z] { target->log_density(z); }});
    }
  }
  report("batch " + std::to_string(batch), arguments, contenders,
         std::max<int64_t>(3, arguments.rounds * 2048 / (batch + 2048)), batch, floor.flops());
}

int run(int argc, char** argv) {
  const Arguments arguments = arguments_of(argc, argv, 31);
  const c10::NoGradGuard no_grad;
  const Vae vae = make_vae({}, 1).to(arguments.device, at::kFloat);
  for (const int64_t batch :
       arguments.numbers.empty() ? std::vector<int64_t>{256, 2048, 8192} : arguments.numbers)
    measure(vae, batch, arguments);
  return 0;
}

}  // namespace
}  // namespace crais::bench

int main(int argc, char** argv) {
  return crais::run_main("evaluator_bench", [&] { return crais::bench::run(argc, argv); });
}
