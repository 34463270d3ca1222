// mcd_bench [ROUNDS [HIDDEN...]]: seconds of one training iteration of Monte Carlo Diffusion (128
// chains, 64 moves, HIDDEN units) on the posterior of a VAE, against the matrix products that it
// cannot do without. One thread.
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <cstdio>
#include <cstdlib>

#include "cli/program.h"
#include "core/rng.h"
#include "samplers/mcd.h"
#include "targets/decoder_posterior.h"
#include "yardstick.h"

namespace crais::bench {
namespace {

constexpr int64_t kChains = 128, kMoves = 64;

/// Value, gradient, and the Hessian-vector product: two passes forward and two back.
class DecoderFloor {
 public:
  explicit DecoderFloor(const Network& decoder) : passes_(decoder, kChains) {}
  void run() {
    for (int64_t k = 0; k <= kMoves; ++k) {
      passes_.run();
      passes_.run();
    }
  }

 private:
  GemmFloor passes_;
};

/// The score network forward, and back to its inputs and its weights.
class NetworkFloor {
 public:
  NetworkFloor(int64_t dim, int64_t hidden) {
    const int64_t rows = kChains * kMoves;
    for (const auto& [in, out] :
         {std::pair{dim, hidden}, {hidden, hidden}, {hidden, hidden}, {hidden, dim}}) {
      weights_.push_back(at::randn({out, in}));
      inputs_.push_back(at::randn({rows, in}));
      outputs_.push_back(at::randn({rows, out}));
    }
  }
  void run() {
    for (size_t i = 0; i < weights_.size(); ++i) {
      at::mm_out(outputs_[i], inputs_[i], weights_[i].t());
      at::mm_out(inputs_[i], outputs_[i], weights_[i]);
      at::mm_out(weights_[i], outputs_[i].t(), inputs_[i]);
      weights_[i].fill_(0.01);
    }
  }

 private:
  std::vector<at::Tensor> weights_, inputs_, outputs_;
};

void iterate(const Problem& problem, const ScoreNetworkShape& shape, const at::Tensor& flat) {
  const c10::AutoGradMode with_grad(true);
  at::Generator rng = make_generator(3);
  flat.mutable_grad() = at::Tensor();
  mcd_log_weights(problem, {shape, flat}, 1, rng).log_w.mean().backward();
}

void measure(const Vae& vae, int64_t hidden, int64_t rounds) {
  at::Generator rng = make_generator(1);
  const at::Tensor images = simulate(vae, kChains, rng).images;
  const DecoderPosterior target(vae, images);
  const AffineMap base = AffineMap::identity(kChains, target.dim(), at::kFloat);
  const Problem problem(borrow(target), base);
  const ScoreNetworkShape shape{target.dim(), kMoves, hidden, 16};
  const at::Tensor flat = McdParameters::initial(shape, 0.01, at::kFloat, rng).requires_grad_(true);
  DecoderFloor decoder(vae.decoder);
  NetworkFloor network(target.dim(), hidden);
  const auto times = medians({{"decoder's products", [&] { decoder.run(); }},
                              {"network's products", [&] { network.run(); }},
                              {"iteration", [&] { iterate(problem, shape, flat); }}},
                             rounds);
  std::printf("hidden %ld\n", long(hidden));
  for (const auto& [name, seconds] : times) std::printf("  %-20s %.3f s\n", name.c_str(), seconds);
}

}  // namespace
}  // namespace crais::bench

int main(int argc, char** argv) {
  using namespace crais;
  at::set_num_threads(1);
  keep_freed_memory();
  const c10::NoGradGuard no_grad;
  const Vae vae = make_vae({}, 1);
  const int64_t rounds = argc > 1 ? std::atol(argv[1]) : 5;
  std::printf("%s\n", bench::machine().c_str());
  if (argc <= 2) bench::measure(vae, 128, rounds);
  for (int i = 2; i < argc; ++i) bench::measure(vae, std::atol(argv[i]), rounds);
}
