#include "targets/tempered.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/rng.h"
#include "support/expect_error.h"
#include "support/statistics.h"
#include "support/targets.h"
#include "targets/decoder_posterior.h"

namespace crais {
namespace {

using testing::max_abs_diff;

Vae decoder(double noise) {
  VaeArchitecture architecture;
  architecture.image_rows = 2;
  architecture.image_cols = 3;
  architecture.latent = 4;
  architecture.hidden = {5};
  architecture.likelihood = parse_likelihood("gaussian:" + std::to_string(noise));
  return make_vae(architecture, 1).to(at::kCPU, at::kDouble);
}

TEST(Tempered, TurnsNoiseIntoOtherNoise) {
  at::Generator rng = make_generator(1);
  const at::Tensor images = at::randn({3, 6}, rng, at::kDouble);
  const double from = 0.7, to = 0.2, pixels = 6;
  const auto constant = [&](double sd) { return 0.5 * pixels * std::log(2 * M_PI * sd * sd); };
  const double power = from * from / (to * to);
  const Tempered tempered(std::make_shared<DecoderPosterior>(decoder(from), images),
                          {power, power * constant(from) - constant(to)});
  const DecoderPosterior exact(decoder(to), images);
  const at::Tensor z = at::randn({3, 7, 4}, rng, at::kDouble);
  const Evaluation found = tempered.evaluate(z), wanted = exact.evaluate(z);
  EXPECT_LT(max_abs_diff(found.log_density, wanted.log_density), 1e-9);
  EXPECT_LT(max_abs_diff(found.grad, wanted.grad), 1e-9);
  EXPECT_LT(max_abs_diff(tempered.log_density(z), wanted.log_density), 1e-9);
  const at::Tensor index = at::tensor({2, 0}, at::kLong);
  EXPECT_LT(max_abs_diff(tempered.select(index)->log_density(z.index_select(0, index)),
                         wanted.log_density.index_select(0, index)),
            1e-9);
}

/// A density whose prior is a normal with correlations.
class OwnPrior : public Target {
 public:
  int64_t num_problems() const override { return 2; }
  int64_t dim() const override { return 2; }
  at::Tensor log_density(const at::Tensor& z) const override {
    const AffineMap prior = prior_base();
    const at::Tensor e = prior.to_e(z);
    return -0.5 * e.square().sum(-1) - std::log(2 * M_PI) - prior.log_abs_det().unsqueeze(1) +
           log_likelihood(z);
  }
  static at::Tensor log_likelihood(const at::Tensor& z) { return -z.select(-1, 0).square(); }
  AffineMap prior_base() const override {
    const at::Tensor root = at::tensor({2.0, 0.0, 0.7, 0.5}, at::kDouble).view({2, 2});
    return {at::tensor({0.3, -1.0}, at::kDouble).repeat({2, 1}), root.repeat({2, 1, 1})};
  }
};

TEST(Tempered, TakesThePriorOfItsTarget) {
  const auto target = std::make_shared<OwnPrior>();
  const Tempered tempered(target, {3.0});
  at::Generator rng = make_generator(2);
  const at::Tensor z = at::randn({2, 5, 2}, rng, at::kDouble);
  const at::Tensor wanted = target->log_density(z) + 2 * OwnPrior::log_likelihood(z);
  const Evaluation found = tempered.evaluate(z);
  EXPECT_LT(max_abs_diff(found.log_density, wanted), 1e-12);
  at::Tensor likelihood_slope = at::zeros_like(z);
  likelihood_slope.select(-1, 0).copy_(-2 * z.select(-1, 0));
  EXPECT_LT(max_abs_diff(found.grad, target->evaluate(z).grad + 2 * likelihood_slope), 1e-12);
}

TEST(Tempered, KeepsDrawsWhereTheyAreItsOwn) {
  at::Generator rng = make_generator(1);
  const Simulated drawn = simulate(decoder(0.5), 3, rng);
  const auto target = std::make_shared<DecoderPosterior>(decoder(0.5), drawn.images, drawn.latents);
  EXPECT_FALSE(Tempered(target, {2.0}).exact_sample(4, rng));
  const Tempered::Options same{1.0, 0.0, true};
  EXPECT_EQ(Tempered(target, same).exact_sample(4, rng)->sizes(), at::IntArrayRef({3, 4, 4}));
  expect_error(ErrorKind::kArgument, {"power"}, [&] { Tempered(target, {0.0}); });
}

}  // namespace
}  // namespace crais
