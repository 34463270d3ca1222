// Rate and distortion of a linear decoder at every temperature, against their closed form.
#include "estimates/rate_distortion.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/rng.h"
#include "estimates/method.h"
#include "support/expect_error.h"
#include "support/linear_curve.h"
#include "support/statistics.h"
#include "targets/decoder_posterior.h"
#include "targets/tempered.h"

namespace crais {
namespace {

using testing::LinearCurve;
using testing::max_abs_diff;

constexpr int64_t kLatent = 3, kPixels = 5, kSteps = 24, kChains = 32;

class RateDistortionOfLinearDecoder : public ::testing::Test {
 protected:
  RateDistortionOfLinearDecoder() {
    at::Generator rng = make_generator(1);
    truth_ = LinearCurve::drawn(kPixels, kLatent, 0.6, rng);
    vae_ = truth_.vae();
  }

  std::shared_ptr<const Target> simulated(int64_t count) {
    at::Generator rng = make_generator(2);
    const Simulated drawn = simulate(vae_, count, rng);
    images_ = drawn.images;
    return std::make_shared<DecoderPosterior>(vae_, images_, drawn.latents);
  }

  static AnnealingParts parts(const std::string& path = "geometric") {
    return {PathRegistry::instance().make("path", path),
            TransitionRegistry::instance().make("kernel", "ghmc:0.8", {1}), nullptr};
  }

  /// Equal steps of log-weights' mean would crowd at the prior; squares of equal steps do as well.
  static Plan plan(int64_t steps = kSteps, int64_t chains = kChains) {
    const at::Tensor betas = at::linspace(0, 1, steps + 1, at::kDouble).square().unsqueeze(1);
    return {betas, at::full({steps, 1}, 0.5, at::kDouble), chains};
  }

  static RateDistortionMethod::Curve run(const std::shared_ptr<const Target>& target,
                                         const Plan& plan, uint64_t seed = 3,
                                         bool reverse = false) {
    const Problem problem(target, target->prior_base());
    at::Generator rng = make_generator(seed);
    return RateDistortionMethod(parts(), reverse).curve(problem, plan, rng);
  }

  Vae vae_;
  LinearCurve truth_;
  at::Tensor images_;
};

TEST_F(RateDistortionOfLinearDecoder, EveryTemperatureIsTheClosedForm) {
  const auto target = simulated(400);
  const RateDistortion found = run(target, plan()).curve;
  ASSERT_EQ(found.beta.size(0), kSteps + 1);
  EXPECT_EQ(found.rate.value[0].abs().max().item<double>(), 0);  // the prior itself
  for (int64_t t = 0; t <= kSteps; ++t) {
    const double beta = found.beta[t].item<double>();
    SCOPED_TRACE("beta " + std::to_string(beta));
    const LinearCurve::Point exact = truth_.at(beta, images_);
    EXPECT_LT(std::abs(testing::z_score(found.distortion.value[t] - exact.distortion, 0)), 5);
    if (t == 0) continue;
    EXPECT_LT(std::abs(testing::z_score(found.log_normalizer.value[t] +
                                            0.5 * found.log_normalizer.error[t].square() -
                                            exact.log_normalizer,
                                        0)),
              5);
    EXPECT_LT(
        std::abs(testing::z_score(found.rate.value[t] - found.rate_bias.value[t] - exact.rate, 0)),
        5);
    // The test sees a sign: of beta D, and of the weights.
    const at::Tensor mistaken = beta * found.distortion.value[t] - found.log_normalizer.value[t];
    EXPECT_GT(std::abs(testing::z_score(mistaken - exact.rate, 0)), 5);
  }
  EXPECT_LT(testing::std_error(found.rate.value[kSteps] - truth_.at(1, images_).rate), 0.02);
}

TEST_F(RateDistortionOfLinearDecoder, AtTheEndRateAndDistortionAreMinusLogLikelihood) {
  const auto target = simulated(400);
  const auto [result, curve] = run(target, plan());
  const at::Tensor sum = curve.rate.value[kSteps] + curve.distortion.value[kSteps];
  EXPECT_LT(max_abs_diff(sum, -result.estimate.value), 1e-10);
  EXPECT_LT(
      std::abs(testing::z_score(sum + truth_.log_likelihood(images_) + result.estimate.bias, 0)),
      5);
}

TEST_F(RateDistortionOfLinearDecoder, TheCurveFallsAndBends) {
  const auto target = simulated(200);
  const RateDistortion found = run(target, plan()).curve;
  const at::Tensor rate = found.rate.value.mean(1), distortion = found.distortion.value.mean(1);
  EXPECT_TRUE((rate.diff() > 0).all().item<bool>());
  EXPECT_TRUE((distortion.diff() < 0).all().item<bool>());
  // Between two temperatures the slope is between minus the one and minus the other.
  const at::Tensor slope = (rate.diff() / distortion.diff()).slice(0, 1);
  EXPECT_TRUE((slope < -0.9 * found.beta.slice(0, 1, -1)).all().item<bool>());
  EXPECT_TRUE((slope > -1.1 * found.beta.slice(0, 2)).all().item<bool>());
}

TEST_F(RateDistortionOfLinearDecoder, ErrorBarsCover) {
  constexpr int64_t kReplicates = 600;
  simulated(2);
  const at::Tensor one = images_.slice(0, 1, 2).repeat({kReplicates, 1});
  const auto target = std::make_shared<DecoderPosterior>(vae_, one);
  const RateDistortion found = run(target, plan(), 11).curve;
  for (const int64_t t : {0, 4, 12, 24}) {
    const double beta = found.beta[t].item<double>();
    SCOPED_TRACE("beta " + std::to_string(beta));
    const LinearCurve::Point exact = truth_.at(beta, one.slice(0, 0, 1));
    const auto check = [&](const at::Tensor& values, const at::Tensor& errors, double truth) {
      const double spread = values.std(0, /*unbiased=*/true).item<double>();
      EXPECT_NEAR(errors.square().mean().sqrt().item<double>() / spread, 1, 0.15);
      const double covered =
          ((values - truth).abs() < 2 * errors).to(at::kDouble).mean().item<double>();
      EXPECT_GT(covered, 0.92);
      EXPECT_LT(covered, 0.98);
    };
    check(found.distortion.value[t], found.distortion.error[t], exact.distortion.item<double>());
    if (t == 0) continue;
    check(found.rate.value[t], found.rate.error[t], exact.rate.item<double>());
    check(found.log_normalizer.value[t], found.log_normalizer.error[t],
          exact.log_normalizer.item<double>());
  }
}

TEST_F(RateDistortionOfLinearDecoder, SimulatedImagesHaveBoundsBothWays) {
  const auto target = simulated(400);
  const at::Tensor truth = truth_.log_likelihood(images_);
  for (const int64_t steps : {3, 96}) {
    const auto [result, curve] = run(target, plan(steps, /*chains=*/8), 3, /*reverse=*/true);
    const at::Tensor lower = result.estimate.value, upper = result.upper->value;
    EXPECT_LT(max_abs_diff(curve.gap.value[steps], upper - lower), 1e-10);
    EXPECT_LT(curve.gap.value[0].abs().max().item<double>(), 1e-10);
    EXPECT_GT((truth - lower).mean().item<double>(), -5 * testing::std_error(truth - lower));
    EXPECT_GT((upper - truth).mean().item<double>(), -5 * testing::std_error(upper - truth));
    if (steps == 3) {  // far enough apart to be told from the truth
      EXPECT_GT(testing::z_score(truth - lower, 0), 5);
      EXPECT_GT(testing::z_score(upper - truth, 0), 5);
      continue;
    }
    for (int64_t t = 1; t <= steps; ++t) {  // close: an estimate of log Z at every temperature
      const at::Tensor exact = truth_.at(curve.beta[t].item<double>(), images_).log_normalizer;
      const at::Tensor apart = curve.log_normalizer.value[t] + curve.gap.value[t] - exact;
      EXPECT_LT(std::abs(apart.mean().item<double>()), 0.05) << t;
    }
    const Cost one = run(target, plan(steps, 8)).result.cost;
    EXPECT_EQ(one.densities, 400 * 8 * (1 + steps));
    EXPECT_EQ(result.cost.densities, 2 * one.densities);
  }
}

TEST_F(RateDistortionOfLinearDecoder, ATemperedPosteriorGoesOnBeyondOne) {
  const auto posterior = simulated(400);
  constexpr double kLast = 2.5;
  const auto target = std::make_shared<Tempered>(posterior, Tempered::Options{kLast});
  const RateDistortion found = run(target, plan()).curve;
  for (const int64_t t : {6, 16, 24}) {
    const LinearCurve::Point exact = truth_.at(kLast * found.beta[t].item<double>(), images_);
    EXPECT_LT(std::abs(testing::z_score(found.distortion.value[t] / kLast - exact.distortion, 0)),
              5);
    EXPECT_LT(
        std::abs(testing::z_score(found.rate.value[t] - found.rate_bias.value[t] - exact.rate, 0)),
        5);
  }
}

TEST_F(RateDistortionOfLinearDecoder, SumsOfPartsAreThoseOfTheWhole) {
  const auto target = simulated(7);
  const RateDistortion whole = run(target, plan(6, 4), 3, true).curve;
  const auto part = [&](int64_t begin, int64_t end) {
    RateDistortion some = whole;
    for (const auto& [name, column] : RateDistortion::columns())
      for (at::Tensor CurveValues::*field : {&CurveValues::value, &CurveValues::error})
        if ((whole.*column.*field).defined())
          some.*column.*field = (whole.*column.*field).slice(1, begin, end);
    return some;
  };
  const RateDistortionSums all = sums_of(whole),
                           parts = merged(
                               {sums_of(part(0, 3)), sums_of(part(3, 4)), sums_of(part(4, 7))});
  EXPECT_EQ(parts.num_problems, 7);
  EXPECT_EQ(all.columns().size(), 6U);
  for (const auto& [name, column] : all.columns()) {
    EXPECT_LT(max_abs_diff((all.*column).mean, (parts.*column).mean), 1e-12) << name;
    EXPECT_LT(max_abs_diff((all.*column).squares, (parts.*column).squares), 1e-10) << name;
    EXPECT_LT(max_abs_diff((all.*column).errors, (parts.*column).errors), 1e-10) << name;
  }
  EXPECT_TRUE(at::equal(all.least_ess, parts.least_ess));
  EXPECT_LT(max_abs_diff(all.rate.squares / 6, whole.rate.value.var(1, /*unbiased=*/true)), 1e-10);
  RateDistortionSums other = sums_of(part(0, 3));
  other.beta = other.beta * 0.5;
  expect_error(ErrorKind::kData, {"different temperatures"}, [&] { merged({all, other}); });
}

TEST_F(RateDistortionOfLinearDecoder, AnEstimateHasTheColumnsOfItsSums) {
  const auto target = simulated(5);
  const Problem problem(target, target->prior_base());
  at::Generator rng = make_generator(3);
  const MethodResult found = RateDistortionMethod(parts(), true).estimate(problem, plan(6, 4), rng);
  const RateDistortionSums back = sums_from(found.columns, 5, "here"),
                           sums = sums_of(run(target, plan(6, 4), 3, true).curve);
  EXPECT_EQ(back.num_problems, 5);
  EXPECT_TRUE(back.has_gap());
  EXPECT_TRUE(at::equal(back.beta, sums.beta) && at::equal(back.least_ess, sums.least_ess));
  for (const auto& [name, column] : sums.columns()) {
    EXPECT_TRUE(at::equal((back.*column).mean, (sums.*column).mean)) << name;
    EXPECT_TRUE(at::equal((back.*column).squares, (sums.*column).squares)) << name;
    EXPECT_TRUE(at::equal((back.*column).errors, (sums.*column).errors)) << name;
  }
}

TEST_F(RateDistortionOfLinearDecoder, BlocksOfProblemsAreOneResult) {
  // So many chains that a block holds one problem.
  const auto target = simulated(3);
  const Plan many = plan(2, 120000);
  const auto [result, curve] = run(target, many);
  ASSERT_EQ(curve.rate.value.sizes(), at::IntArrayRef({3, 3}));
  EXPECT_EQ(result.cost.densities, 3 * 120000 * 3);
  for (int64_t t : {1, 2}) {
    const at::Tensor exact = truth_.at(curve.beta[t].item<double>(), images_).rate;
    const at::Tensor z = (curve.rate.value[t] - exact) / curve.rate.error[t];
    EXPECT_LT(z.abs().max().item<double>(), 5);
  }
}

TEST_F(RateDistortionOfLinearDecoder, SaysWhatItCannot) {
  const auto target = simulated(2);
  at::Generator rng = make_generator(1);
  const Problem elsewhere(target, target->prior_base().widened(1.5));
  expect_error(ErrorKind::kArgument, {"prior"},
               [&] { RateDistortionMethod(parts(), false).curve(elsewhere, plan(), rng); });
  Plan own = plan();
  own.betas = own.betas.repeat({1, 2});
  own.step_sizes = own.step_sizes.repeat({1, 2});
  expect_error(ErrorKind::kArgument, {"plan_per_problem"}, [&] { run(target, own); });
  expect_error(ErrorKind::kArgument, {"geometric"},
               [&] { make_rate_distortion("rate-distortion", parts("power:0.5")); });
  EXPECT_TRUE(make_rate_distortion("rate-distortion:reverse=1", parts())->needs_exact_draws());
  expect_error(ErrorKind::kArgument, {"backwards"},
               [&] { make_rate_distortion("rate-distortion:backwards=1", parts()); });
}

}  // namespace
}  // namespace crais
