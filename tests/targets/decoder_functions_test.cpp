// The posterior of a model that is known by its functions alone.
#include <gtest/gtest.h>

#include <cmath>
#include <new>
#include <stdexcept>

#include "bases/base.h"
#include "core/rng.h"
#include "kernels/fused_decoder.h"
#include "support/expect_error.h"
#include "support/statistics.h"
#include "targets/decoder_posterior.h"

namespace crais {
namespace {

using testing::max_abs_diff;

const double kNoise = 0.5;

at::Tensor weight() {  // [D=2, M=3]
  return at::tensor({0.4, -1.0, 0.3, 0.8, 0.2, -0.6}, at::kDouble).view({2, 3});
}

/// x = z W + noise under N(0, S) with S = diag(1, 4).
class LinearModel : public LatentModel {
 public:
  explicit LinearModel(std::vector<std::string> functions, int64_t batch = 4) : batch_(batch) {
    description_.latent = 2;
    description_.data_shape = {3};
    description_.functions = std::move(functions);
  }

  const ModelDescription& description() const override { return description_; }
  std::string evaluator() const override { return "test"; }
  int64_t batch() const override { return batch_; }

  Density joint(const at::Tensor& z, const at::Tensor& x, const at::Tensor& /*y*/) const override {
    EXPECT_LE(z.size(0), batch_);
    EXPECT_EQ(z.size(0), x.size(0));
    const at::Tensor off = x - at::matmul(z, weight());
    const Density own = *prior(z);
    return {own.value - off.square().sum(1) / (2 * kNoise * kNoise),
            own.grad + at::matmul(off, weight().t()) / (kNoise * kNoise)};
  }
  std::optional<Posterior> encode(const at::Tensor& x, const at::Tensor& /*y*/) const override {
    return Posterior{0.1 * x.slice(1, 0, 2), at::full({x.size(0), 2}, 0.7, at::kDouble)};
  }
  std::optional<Output> output(const at::Tensor& z, const at::Tensor& /*y*/) const override {
    EXPECT_LE(z.size(0), batch_);
    const at::Tensor value = at::matmul(z, weight());
    return Output{value, at::full_like(value, 1 / (kNoise * kNoise))};
  }
  std::optional<Density> prior(const at::Tensor& z) const override {
    const at::Tensor scaled = z / variance();
    return Density{-0.5 * (z * scaled).sum(1), -scaled};
  }
  std::optional<Moments> prior_moments() const override {
    return Moments{at::zeros({2}, at::kDouble), variance().sqrt().diag()};
  }

  static at::Tensor variance() { return at::tensor({1.0, 4.0}, at::kDouble); }

 private:
  ModelDescription description_;
  int64_t batch_;
};

at::Tensor data() { return at::tensor({0.3, -0.2, 1.0, -1.4, 0.1, 0.5}, at::kDouble).view({2, 3}); }

/// The precision of the posterior, which is equal for every datum.
at::Tensor exact_precision() {
  return LinearModel::variance().reciprocal().diag() +
         at::matmul(weight(), weight().t()) / (kNoise * kNoise);
}

std::shared_ptr<const DecoderPosterior> posterior(std::vector<std::string> functions) {
  return std::make_shared<DecoderPosterior>(std::make_shared<LinearModel>(std::move(functions)),
                                            data());
}

TEST(DecoderPosterior, EvaluatesEveryParticleWithItsOwnDatum) {
  const auto target = posterior({"joint"});
  at::Generator rng = make_generator(3);
  const at::Tensor z = at::randn({2, 7, 2}, rng, at::kDouble);  // 14 rows in batches of 4
  const Evaluation found = target->evaluate(z);
  for (int64_t p = 0; p < 2; ++p)
    for (int64_t k = 0; k < 7; ++k) {
      const auto alone =
          LinearModel({"joint"}).joint(z[p].slice(0, k, k + 1), data().slice(0, p, p + 1), {});
      // Not to the last bit: some processors' products sum a lone row in another order.
      EXPECT_NEAR(found.log_density[p][k].item<double>(), alone.value[0].item<double>(), 1e-12);
      EXPECT_LT(max_abs_diff(found.grad[p][k], alone.grad[0]), 1e-12);
    }
}

TEST(DecoderPosterior, CurvatureIsThePrecisionHoweverItIsFound) {
  at::Generator rng = make_generator(4);
  const at::Tensor z = at::randn({2, 2}, rng, at::kDouble);
  const at::Tensor exact = exact_precision().expand({2, 2, 2});
  EXPECT_LT(max_abs_diff(posterior({"joint", "output", "prior"})->curvature(z), exact), 1e-8);
  EXPECT_LT(max_abs_diff(posterior({"joint"})->curvature(z), exact), 1e-8);
  // Without a prior of its own the model's is N(0, I).
  const at::Tensor standard = exact + (1 - LinearModel::variance().reciprocal()).diag();
  EXPECT_LT(max_abs_diff(posterior({"joint", "output"})->curvature(z), standard), 1e-8);
  EXPECT_EQ(posterior({"joint", "output"})->curvature_cost(), 2);
  EXPECT_EQ(posterior({"joint"})->curvature_cost(), 4);
}

TEST(DecoderPosterior, BasesAreTheModelsOwn) {
  const auto target = posterior({"joint", "encode", "prior"});
  EXPECT_LT(max_abs_diff(target->amortised_base()->loc(), 0.1 * data().slice(1, 0, 2)), 1e-12);
  at::Generator rng = make_generator(0);
  const Base prior = make_base("prior")->build(*target, rng);
  EXPECT_LT(max_abs_diff(prior.map.matrix()[1], LinearModel::variance().sqrt().diag()), 1e-12);
  EXPECT_FALSE(posterior({"joint"})->amortised_base().has_value());
}

/// Has forces whose one product is in bfloat16.
class ForcedModel : public LinearModel {
 public:
  ForcedModel() : LinearModel({"joint", "output", "prior"}) {}
  bool has_forces(at::ScalarType dtype) const override { return dtype == at::kBFloat16; }
  Density joint_with_forces(const at::Tensor& z, const at::Tensor& x, const at::Tensor& y,
                            at::ScalarType dtype) const override {
    const at::Tensor off = (x - at::matmul(z, weight())).to(dtype);
    const at::Tensor pull = at::matmul(off, weight().t().to(dtype)).to(at::kDouble);
    return {joint(z, x, y).value, prior(z)->grad + pull / (kNoise * kNoise)};
  }
};

TEST(DecoderPosterior, ForcesInBfloat16LeaveValuesAndCurvaturesAsTheyAre) {
  const DecoderPosterior plain(std::make_shared<ForcedModel>(), data());
  EXPECT_EQ(plain.with_forces(at::kHalf), nullptr);
  EXPECT_EQ(posterior({"joint"})->with_forces(at::kBFloat16), nullptr);
  EXPECT_TRUE(plain.traits().forces_pay);
  const auto forced = plain.with_forces(at::kBFloat16);
  ASSERT_NE(forced, nullptr);
  at::Generator rng = make_generator(5);
  const at::Tensor z = at::randn({2, 7, 2}, rng, at::kDouble);
  const Evaluation ours = forced->evaluate(z), theirs = plain.evaluate(z);
  EXPECT_TRUE(at::equal(ours.log_density, theirs.log_density));
  EXPECT_GT(max_abs_diff(ours.grad, theirs.grad), 1e-4);
  EXPECT_LT(max_abs_diff(ours.grad, theirs.grad), 2e-2 * theirs.grad.abs().max().item<double>());
  EXPECT_TRUE(at::equal(forced->evaluate(z).grad, ours.grad));
  const auto second = forced->select(at::tensor({1}, at::kLong));
  EXPECT_TRUE(at::equal(second->evaluate(z.slice(0, 1, 2)).grad, ours.grad.slice(0, 1, 2)));
  EXPECT_TRUE(at::equal(forced->curvature(z.select(1, 0)), plain.curvature(z.select(1, 0))));
}

/// Cannot hold more than so many rows, and says so in the words of a library.
class SmallMemory : public LinearModel {
 public:
  explicit SmallMemory(int64_t most, std::string words = "")
      : LinearModel({"joint"}, 8), most_(most), words_(std::move(words)) {}
  Density joint(const at::Tensor& z, const at::Tensor& x, const at::Tensor& y) const override {
    if (z.size(0) > most_ && words_.empty()) throw std::bad_alloc();
    if (z.size(0) > most_) throw std::runtime_error(words_);
    return LinearModel::joint(z, x, y);
  }

 private:
  int64_t most_;
  std::string words_;
};

TEST(DecoderPosterior, CallsFewerRowsWhereMemoryIsShort) {
  at::Generator rng = make_generator(6);
  const at::Tensor z = at::randn({2, 7, 2}, rng, at::kDouble);
  const Evaluation wanted = posterior({"joint"})->evaluate(z);
  for (const int64_t most : {1, 3}) {
    const DecoderPosterior target(std::make_shared<SmallMemory>(most), data());
    EXPECT_LT(max_abs_diff(target.evaluate(z).log_density, wanted.log_density), 1e-12);
    EXPECT_LT(max_abs_diff(target.evaluate(z).grad, wanted.grad), 1e-12);
  }
  const DecoderPosterior none(std::make_shared<SmallMemory>(0), data());
  EXPECT_THROW(none.evaluate(z), std::bad_alloc);
  const DecoderPosterior allocator(std::make_shared<SmallMemory>(0, "CUDA out of memory. Tried"),
                                   data());
  EXPECT_THROW(allocator.evaluate(z), std::bad_alloc);
  const DecoderPosterior faulty(std::make_shared<SmallMemory>(0, "no primitive\nat line 3"),
                                data());
  expect_error(ErrorKind::kData, {"cannot be computed: no primitive"}, [&] { faulty.evaluate(z); });
}

/// x = W z + noise of many latents, but few numbers: the likelihood's precision has rank 12.
class WideModel : public LatentModel {
 public:
  WideModel() {
    description_.latent = 300;
    description_.data_shape = {12};
    description_.functions = {"joint"};
    at::Generator rng = make_generator(8);
    weight_ = at::randn({300, 12}, rng, at::kDouble) / 10;
  }
  const ModelDescription& description() const override { return description_; }
  std::string evaluator() const override { return "test"; }
  int64_t batch() const override { return 64; }
  Density joint(const at::Tensor& z, const at::Tensor& x, const at::Tensor& /*y*/) const override {
    const at::Tensor off = x - at::matmul(z, weight_);
    return {-0.5 * z.square().sum(1) - off.square().sum(1) / (2 * kNoise * kNoise),
            -z + at::matmul(off, weight_.t()) / (kNoise * kNoise)};
  }
  at::Tensor precision() const {
    return at::eye(300, at::kDouble) + at::matmul(weight_, weight_.t()) / (kNoise * kNoise);
  }

 private:
  ModelDescription description_;
  at::Tensor weight_;
};

TEST(DecoderPosterior, LanczosFindsACurvatureOfLowRank) {
  const auto model = std::make_shared<WideModel>();
  const DecoderPosterior target(model, at::ones({2, 12}, at::kDouble));
  const at::Tensor found = target.curvature(at::zeros({2, 300}, at::kDouble));
  EXPECT_LT(max_abs_diff(found[0], model->precision()), 1e-6);
  EXPECT_LT(max_abs_diff(found[1], model->precision()), 1e-6);
  EXPECT_EQ(target.curvature_cost(), 128);
}

TEST(DecoderPosterior, FusedEvaluationsAreJoinedFromBlocks) {
  // 142 million multiplications a row, of which few meet the image: blocks of 16 rows.
  const Convolution wide{false, {128, 1, 1}, {128, 31, 31}, {3, 3}, {1, 1}, {16, 16}, {1, 1}};
  at::Generator rng = make_generator(1);
  DecoderNetwork network;
  network.layers = {{0.1 * at::randn({128, 128, 3, 3}, rng), at::zeros({128}), wide}};
  class Convolutional : public LinearModel {
   public:
    explicit Convolutional(const DecoderNetwork& network) : LinearModel({}), network_(network) {
      description_.latent = 128;
      description_.data_shape = {128, 31, 31};
    }
    const ModelDescription& description() const override { return description_; }
    const DecoderNetwork* decoder() const override { return &network_; }

   private:
    ModelDescription description_ = LinearModel::description();
    const DecoderNetwork& network_;
  };
  const auto model = std::make_shared<Convolutional>(network);
  const at::Tensor x = (at::rand({3, 128, 31, 31}, rng) < 0.5).to(at::kFloat);
  const auto fused = fused_decoder_of(*model);
  if (!fused) GTEST_SKIP() << "CRAIS_EVALUATOR is aten";
  const DecoderPosterior target(model, x, {}, {}, fused);
  for (const int64_t particles : {6, 18}) {  // two problems at once, then parts of one
    const at::Tensor z = at::randn({3, particles, 128}, rng);
    const Evaluation found = target.evaluate(z), whole = fused->evaluate(z, x.flatten(1));
    EXPECT_TRUE(at::equal(found.log_density, whole.log_density)) << particles;
    EXPECT_TRUE(at::equal(found.grad, whole.grad)) << particles;
    EXPECT_TRUE(at::equal(target.log_density(z), whole.log_density)) << particles;
  }
}

TEST(DecoderPosterior, DataOutsideTheSupportAreNamed) {
  ModelDescription model{.likelihood = "bernoulli", .low = 0.0, .high = 1.0};
  const at::Tensor good = at::tensor({0.0, 1.0, 0.5, 0.25}).view({2, 2});
  EXPECT_NO_THROW(check_support(model, good, "data"));
  expect_error(ErrorKind::kData, {"entry 1 of image 0 is 255"},
               [&] { check_support(model, good * 255, "data"); });
  expect_error(ErrorKind::kData, {"entry 0 of image 0"},
               [&] { check_support(model, good / 0.0, "data"); });
  model.step = 0.25;
  EXPECT_NO_THROW(check_support(model, good, "data"));
  model.step = 0.2;
  expect_error(ErrorKind::kData, {"entry 0 of image 1 is 0.5"},
               [&] { check_support(model, good, "data"); });
}

}  // namespace
}  // namespace crais
