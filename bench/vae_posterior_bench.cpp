// What one evaluation costs: the unit in which every estimate is paid.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include "core/rng.h"
#include "models/vae.h"
#include "targets/vae_posterior.h"

namespace crais {
namespace {

/// log p(x, z) and its gradient for a batch of particles, the default network on one thread.
void evaluate(benchmark::State& state) {
  at::set_num_threads(1);
  const int64_t num_particles = state.range(0);
  const Vae vae = make_vae({}, 1);
  at::Generator rng = make_generator(1);
  const VaePosterior target(vae, simulate(vae, 1, rng).images);
  const at::Tensor z = at::empty({1, num_particles, target.dim()}).normal_(0, 1, rng);
  for (auto _ : state) benchmark::DoNotOptimize(target.evaluate(z));
  state.SetItemsProcessed(state.iterations() * num_particles);  // particles a second
}
BENCHMARK(evaluate)->Arg(16)->Arg(256)->Arg(2048)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace crais
