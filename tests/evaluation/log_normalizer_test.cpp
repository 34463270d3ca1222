#include "evaluation/log_normalizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "bases/base.h"
#include "core/rng.h"
#include "core/target.h"
#include "support/expect_error.h"
#include "support/statistics.h"
#include "support/targets.h"
#include "support/temporary_folder.h"
#include "targets/decoder_posterior.h"
#include "targets/decoder_target.h"
#include "targets/function_target.h"

namespace crais {
namespace {

/// gamma_p = exp(-z1^2 / 2 - (z2 - bend_p z1^2)^2 / (2 sd^2)): Z = 2 pi sd whatever the bend.
at::Tensor banana(const at::Tensor& z, const at::Tensor& bend) {
  const at::Tensor x = z.select(-1, 0), y = z.select(-1, 1);
  return -0.5 * x.square() - 0.5 * ((y - bend.unsqueeze(1) * x.square()) / 0.5).square();
}
const double kBanana = std::log(2 * M_PI * 0.5);

TEST(LogNormalizer, OfAFunction) {
  const FunctionTarget target({.dim = 2},
                              [](const at::Tensor& z) { return (3.0 * z - z.exp()).sum(-1); });
  const Result r = estimate_log_normalizer(target, {.chains = 256, .seed = 1});
  EXPECT_EQ(r.value.sizes(), at::IntArrayRef({1}));
  EXPECT_NEAR(r.value.item<double>(), 2 * std::lgamma(3.0), 5 * r.std_error.item<double>());
  EXPECT_LT(r.std_error.item<double>(), 0.05);
  EXPECT_LE(r.bias.item<double>(), 0);
  EXPECT_GT(r.ess.item<double>(), 0.5);
  EXPECT_EQ(r.flag_words(0), "");
  EXPECT_EQ(r.bound, Bound::kLower);
  EXPECT_EQ(r.summary.evaluations, 256 * (1 + 96));
  EXPECT_GT(r.summary.tuning_evaluations, 0);
  EXPECT_EQ(static_cast<double>(r.cost.densities),
            r.summary.evaluations + r.summary.base_evaluations + r.summary.tuning_evaluations);
  EXPECT_FALSE(r.upper);
}

/// A target that comes as a whole, and the same in chunks.
TEST(LogNormalizer, OfSeveralProblemsWholeAndInChunks) {
  const at::Tensor bend = at::linspace(-0.4, 0.3, 9, at::kDouble);
  const FunctionTarget whole({.num_problems = 9, .dim = 2},
                             [&](const at::Tensor& z) { return banana(z, bend); });
  const FunctionTarget parts({.num_problems = 9, .dim = 2},
                             [&](const at::Tensor& z, const at::Tensor& index) {
                               return banana(z, bend.index_select(0, index));
                             });
  EXPECT_FALSE(whole.traits().can_select);
  const EstimateOptions options{
      .base = "laplace", .chains = 64, .seed = 2, .steps = 16, .chunk = 4};
  const Result one = estimate_log_normalizer(whole, options);
  const Result many = estimate_log_normalizer(parts, options, {.threads = 2});
  EXPECT_EQ(one.run.chunks.size(), 1u);
  EXPECT_EQ(many.run.chunks.size(), 3u);
  for (const Result* r : {&one, &many})
    EXPECT_LT(((r->value - kBanana) / r->std_error).abs().max().item<double>(), 5);
  expect_error(ErrorKind::kArgument, {"select"},
               [&] { estimate_log_normalizer(whole, {.budget = 500}); });
}

/// The prior, by a fit that takes longer where one of several problems is slow.
class SlowTogether : public BaseRule {
 public:
  Base build(const Target& target, at::Generator& rng) const override {
    Base base = make_base("prior")->build(target, rng);
    const int64_t problems = target.num_problems();
    base.cost = {problems * (problems > 1 ? 500 : 20), 0};
    return base;
  }
};
const Enrol<BaseRegistry> kEnrolSlowTogether("slow-together", "of tests", "slow-together",
                                             [](Spec&, const BaseOptions&) {
                                               return std::make_unique<SlowTogether>();
                                             });

TEST(LogNormalizer, ABudgetHoldsWhereFitsOfManyProblemsTakeLonger) {
  const FunctionTarget target({.num_problems = 200, .dim = 2},
                              [](const at::Tensor& z, const at::Tensor& index) {
                                return banana(z, at::full({index.size(0)}, 0.2, at::kDouble));
                              });
  const auto spent = [&](double budget) {
    const Result r =
        estimate_log_normalizer(target, {.base = "slow-together", .budget = budget, .seed = 1});
    return static_cast<double>(r.cost.densities) / 200;
  };
  EXPECT_LE(spent(2000), 2000);
  EXPECT_GT(spent(2000), 1900);
  expect_error(ErrorKind::kArgument, {"the base (up to 625 evaluations)", "510", "`budget`"},
               [&] { spent(510); });
}

TEST(LogNormalizer, SaysWhatAFunctionReturnsAmiss) {
  const FunctionTarget flat({.num_problems = 2, .dim = 3},
                            [](const at::Tensor& z) { return z.square(); });
  expect_error(ErrorKind::kArgument, {"[2, 1]", "[2, 1, 3]"}, [&] {
    flat.log_density(at::zeros({2, 1, 3}, at::kDouble));
  });
  const FunctionTarget nothing({.dim = 1}, [](const at::Tensor&) { return at::Tensor(); });
  expect_error(ErrorKind::kArgument, {"undefined"}, [&] {
    nothing.log_density(at::zeros({1, 1, 1}, at::kDouble));
  });
  expect_error(ErrorKind::kArgument, {"at least one problem"}, [] {
    FunctionTarget({.num_problems = 0, .dim = 1}, [](const at::Tensor& z) { return z; });
  });
}

TEST(LogNormalizer, KeepsAndResumesInAFolder) {
  const testing::TemporaryFolder folder;
  const FunctionTarget target({.num_problems = 6, .dim = 2},
                              [&](const at::Tensor& z, const at::Tensor&) {
                                return testing::LogGamma(z.size(0), {2.0, 3.0}).log_density(z);
                              });
  const EstimateOptions options{.base = "laplace", .seed = 3, .steps = 4, .chunk = 2};
  class StopsAtOnce : public RunObserver {
   public:
    bool stop() override { return seen_; }
    void chunk(const ChunkResult&) override { seen_ = true; }

   private:
    bool seen_ = false;
  } stops;
  LogNormalizerRun run{.threads = 1, .observer = &stops, .folder = folder.path() / "kept"};
  expect_error(ErrorKind::kInterrupted, {"2 of 6", "`resume`"},
               [&] { estimate_log_normalizer(target, options, run); });
  run.observer = nullptr;
  run.store.resume = true;
  const Result rest = estimate_log_normalizer(target, options, run);
  const Result whole = estimate_log_normalizer(target, options);
  EXPECT_TRUE(at::equal(rest.value, whole.value));
  EXPECT_TRUE(at::equal(rest.flags, whole.flags));
  // Another density under the same options is another run.
  const FunctionTarget other(
      {.num_problems = 6, .dim = 2},
      [](const at::Tensor& z, const at::Tensor&) { return -0.5 * z.square().sum(-1); });
  expect_error(ErrorKind::kArgument, {"log_density"},
               [&] { estimate_log_normalizer(other, options, run); });
}

/// The posterior of a decoder given as a function is that of the VAE, gradient and all.
TEST(DecoderTarget, IsTheVaesPosterior) {
  for (const char* likelihood : {"bernoulli", "gaussian:0.5"}) {
    VaeArchitecture architecture;
    architecture.image_rows = architecture.image_cols = 4;
    architecture.latent = 3;
    architecture.hidden = {5};
    architecture.likelihood = parse_likelihood(likelihood);
    const Vae vae = make_vae(architecture, 1).to(at::kCPU, at::kDouble);
    at::Generator rng = make_generator(2);
    const at::Tensor images = simulate(vae, 5, rng).images.to(at::kDouble);
    const DecoderTarget target(
        {.decode =
             [&](const at::Tensor& z) {
               return vae.decoder.forward(z).view({-1, 4, 4});
             },
         .latent_dim = 3,
         .likelihood = architecture.likelihood,
         .encode = [&](const at::Tensor& x) { return vae.encode(x.flatten(1)); }},
        images.view({-1, 4, 4}));
    const DecoderPosterior expected(vae, images);
    const at::Tensor z = at::empty({5, 7, 3}, at::kDouble).normal_(0, 1, rng);
    const Evaluation found = target.evaluate(z), known = expected.evaluate(z);
    EXPECT_LT(testing::max_abs_diff(found.log_density, known.log_density), 1e-11);
    EXPECT_LT(testing::max_abs_diff(found.grad, known.grad), 1e-11);
    EXPECT_TRUE(
        at::allclose(target.amortised_base()->matrix(), expected.amortised_base()->matrix()));
    const auto part = target.select(at::tensor({4, 1}, at::kLong));
    EXPECT_TRUE(at::allclose(
        part->log_density(z.slice(0, 0, 2)),
        expected.select(at::tensor({4, 1}, at::kLong))->log_density(z.slice(0, 0, 2))));
  }
}

TEST(DecoderTarget, SaysWhichSizeItWants) {
  const auto decode = [](const at::Tensor& z) { return z.repeat({1, 3}); };
  const at::Tensor images = at::zeros({2, 10}, at::kDouble);
  expect_error(ErrorKind::kArgument, {"[1, 12]", "10 numbers"},
               [&] { DecoderTarget({.decode = decode, .latent_dim = 4}, images); });
  expect_error(ErrorKind::kArgument, {"latent dimension"},
               [&] { DecoderTarget({.decode = decode}, images); });
}

}  // namespace
}  // namespace crais
