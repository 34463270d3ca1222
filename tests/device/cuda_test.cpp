// --device cuda itself: skipped where there is no GPU. That nothing of ours stays on the CPU is
// tested everywhere, by device_test.cpp.
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <torch/cuda.h>

#include "core/rng.h"
#include "estimates/estimate.h"
#include "models/vae.h"
#include "samplers/mover.h"
#include "samplers/plan.h"
#include "support/statistics.h"
#include "targets/decoder_posterior.h"

namespace crais {
namespace {

constexpr int64_t kCudaImages = 8, kChains = 256;

/// Images of a random decoder of the default size, and their posteriors.
struct CudaPosteriors {
  CudaPosteriors(at::Device device, at::ScalarType dtype) {
    const c10::NoGradGuard no_grad;
    at::Generator rng = make_generator(2);
    const Vae here = make_vae({}, 1).to(at::kCPU, at::kDouble);
    const Simulated drawn = simulate(here, kCudaImages, rng);
    vae = here.to(device, dtype);
    target = std::make_unique<DecoderPosterior>(vae, drawn.images.to(device, dtype),
                                                drawn.latents.to(device, dtype));
  }
  Vae vae;
  std::unique_ptr<DecoderPosterior> target;
};

class Cuda : public ::testing::Test {
 protected:
  void SetUp() override {
    if (torch::cuda::device_count() == 0) GTEST_SKIP() << "there is no CUDA device";
  }

  static AnnealResult run(const Problem& problem, const std::string& kernel, uint64_t seed) {
    const c10::NoGradGuard no_grad;
    const auto path = PathRegistry::instance().make("path", "geometric");
    const auto transition = TransitionRegistry::instance().make("kernel", kernel, {});
    const auto rule = ScheduleRegistry::instance().make("schedule", "linear", ScheduleOptions{24});
    at::Generator rng = make_generator(seed, problem.base().options().device());
    return anneal(problem, *path, freeze(*rule, 0.2), *transition, kChains, rng);
  }

  const at::Device device_{at::kCUDA, 0};
};

TEST_F(Cuda, EvaluatesAsTheCpuDoes) {
  const c10::NoGradGuard no_grad;
  const auto largest = [](const at::Tensor& there, const at::Tensor& here) {
    return (there.cpu().to(at::kDouble) - here).abs().max().item<double>();
  };
  const CudaPosteriors here(at::kCPU, at::kDouble);
  at::Generator rng = make_generator(3);
  const at::Tensor z = at::empty({kCudaImages, 64, 50}, at::kDouble).normal_(0, 1, rng);
  const Evaluation expected = here.target->evaluate(z);
  const CudaPosteriors twice(device_, at::kDouble), once(device_, at::kFloat);
  const Evaluation exact = twice.target->evaluate(z.to(device_));
  EXPECT_LT(largest(exact.log_density, expected.log_density), 1e-9);
  EXPECT_LT(largest(exact.grad, expected.grad), 1e-10);
  const Evaluation single = once.target->evaluate(z.to(device_, at::kFloat));
  EXPECT_LT(largest(single.log_density, expected.log_density), 2e-3);
  EXPECT_LT(largest(single.grad, expected.grad), 1e-4 * expected.grad.abs().max().item<double>());
}

TEST_F(Cuda, EstimatesAsTheCpuDoes) {
  const CudaPosteriors here(at::kCPU, at::kFloat), there(device_, at::kFloat);
  const auto estimate = [](const CudaPosteriors& images) {
    const Problem problem(borrow(*images.target), *images.target->amortised_base());
    const AnnealResult found = run(problem, "ghmc:0.8", 5);
    return log_normalizer(found.log_w.cpu(), {});
  };
  const Estimate a = estimate(here), b = estimate(there);
  const at::Tensor error = (a.std_error.square() + b.std_error.square()).sqrt();
  EXPECT_LT(((a.value - b.value) / error).abs().max().item<double>(), 5);
}

/// With the same random numbers: a recorded move is the move.
TEST_F(Cuda, ReplaysGraphsOfMoves) {
  at::Generator rng = make_generator(1, device_);
  if (!make_recorder(rng)) GTEST_SKIP() << "crais was built without CUDA graphs";
  const CudaPosteriors images(device_, at::kFloat);
  const AffineMap base = *images.target->amortised_base();
  for (const char* kernel : {"hmc", "ghmc:0.8", "mala", "random-walk"}) {
    const Problem plain(borrow(*images.target), base), replayed(borrow(*images.target), base);
    ::setenv("CRAIS_CUDA_GRAPHS", "0", 1);
    const AnnealResult expected = run(plain, kernel, 7);
    ::unsetenv("CRAIS_CUDA_GRAPHS");
    const AnnealResult found = run(replayed, kernel, 7);
    EXPECT_TRUE(at::equal(found.log_w.cpu(), expected.log_w.cpu())) << kernel;
    EXPECT_TRUE(at::equal(found.accept_prob.cpu(), expected.accept_prob.cpu())) << kernel;
    EXPECT_EQ(found.cost, expected.cost);
  }
}

}  // namespace
}  // namespace crais
