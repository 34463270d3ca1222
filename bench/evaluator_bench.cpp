// evaluator_bench [ROUNDS [BATCH...]]: what one (value, gradient) of a particle costs with each
// evaluator, in units of the six matrix products it cannot do without. One thread; a table, then
// JSON.
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "core/rng.h"
#include "kernels/fused_decoder.h"
#include "targets/decoder_posterior.h"
#include "yardstick.h"

namespace crais::bench {
namespace {

constexpr int64_t kParticles = 16;  // of each image

nlohmann::json measure(const Vae& vae, int64_t batch, int64_t rounds) {
  at::Generator rng = make_generator(1);
  const at::Tensor images = simulate(vae, batch / kParticles, rng).images;
  const at::Tensor z =
      at::empty({batch / kParticles, kParticles, vae.architecture.latent}).normal_(0, 1, rng);
  GemmFloor floor(vae.decoder, batch);
  const ScriptPosterior script(vae, images);
  const DecoderPosterior aten(vae, images, {}, nullptr);
  std::vector<Contender> contenders = {{"floor", [&] { floor.run(); }},
                                       {"script (autograd)", [&] { script.evaluate(z); }},
                                       {"aten", [&] { aten.evaluate(z); }},
                                       {"aten value", [&] { aten.log_density(z); }}};
  std::vector<std::unique_ptr<DecoderPosterior>> fused;
  for (const FusedKernel* kernel : available_kernels()) {
    fused.push_back(std::make_unique<DecoderPosterior>(
        vae, images, at::Tensor(), std::make_shared<FusedDecoder>(decoder_network(vae), *kernel)));
    const DecoderPosterior& target = *fused.back();
    contenders.push_back({kernel->name, [&target, z] { target.evaluate(z); }});
    contenders.push_back(
        {std::string(kernel->name) + " value", [&target, z] { target.log_density(z); }});
  }
  const auto times = medians(contenders, rounds);
  const double unit = times.at("floor");
  nlohmann::json found = {{"batch", batch}, {"floor_gflops", floor.flops() / unit / 1e9}};
  std::printf("\nbatch %ld: F = %.3f us a particle, %.0f GFLOP/s\n", long(batch),
              1e6 * unit / double(batch), floor.flops() / unit / 1e9);
  for (const Contender& contender : contenders) {
    const double time = times.at(contender.name);
    std::printf("  %-22s %7.3f us  %6.3f F\n", contender.name.c_str(), 1e6 * time / double(batch),
                time / unit);
    found["floors"][contender.name] = time / unit;
    found["us_per_particle"][contender.name] = 1e6 * time / double(batch);
  }
  return found;
}

}  // namespace
}  // namespace crais::bench

int main(int argc, char** argv) {
  using namespace crais;
  const int64_t rounds = argc > 1 ? std::atol(argv[1]) : 31;
  at::set_num_threads(1);
  if (std::getenv("CRAIS_DEFAULT_MALLOC") == nullptr) keep_freed_memory();
  const c10::NoGradGuard no_grad;
  const Vae vae = make_vae({}, 1);
  std::printf("%s\n", bench::machine().c_str());
  nlohmann::json report = {{"machine", bench::machine()}};
  std::vector<int64_t> batches;
  for (int i = 2; i < argc; ++i) batches.push_back(std::atol(argv[i]));
  if (batches.empty()) batches = {256, 2048, 8192};
  for (const int64_t batch : batches)
    report["batches"].push_back(
        bench::measure(vae, batch, std::max<int64_t>(3, rounds * 2048 / (batch + 2048))));
  std::printf("\n%s\n", report.dump(2).c_str());
}
