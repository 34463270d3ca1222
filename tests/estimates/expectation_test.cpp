#include "estimates/expectation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/rng.h"
#include "evaluation/run_problems.h"
#include "support/expect_error.h"
#include "support/registered.h"
#include "support/statistics.h"

namespace crais {
namespace {

using testing::max_abs_diff;

/// P replicates of K correlated (h, log w), as from any sampler.
struct Ensemble {
  at::Tensor h, log_w;
  Ensemble(int64_t replicates, int64_t particles, uint64_t seed) {
    at::Generator rng = make_generator(seed);
    h = at::empty({replicates, particles, 2}, at::kDouble).normal_(1, 2, rng);
    log_w = -300 + 0.4 * h.select(-1, 0) +
            at::empty({replicates, particles}, at::kDouble).normal_(0, 1, rng);
  }
  ExpectationSums sums(double resamplings) const {
    return expectation_sums(h, {h, log_w, at::full({h.size(0)}, resamplings, at::kDouble)});
  }
};

TEST(Expectation, IsTheRatioOverAllParticlesAndItsDeltaMethod) {
  const Ensemble s(3, 5, 1);
  const ExpectationEstimate e = pooled({s.sums(0)});
  const at::Tensor w = (s.log_w + 300).exp().flatten().unsqueeze(1), h = s.h.view({15, 2});
  const at::Tensor mean = (w * h).sum(0) / w.sum();
  const at::Tensor variance = (w * (h - mean).square()).sum(0) / w.sum();
  const double correction = 15.0 / 14.0;
  const at::Tensor error = (correction * (w * (h - mean)).square().sum(0)).sqrt() / w.sum();
  const at::Tensor variance_error =
      (correction * (w * ((h - mean).square() - variance)).square().sum(0)).sqrt() / w.sum();
  EXPECT_LT(max_abs_diff(e.mean, mean), 1e-12);
  EXPECT_LT(max_abs_diff(e.variance, variance), 1e-12);
  EXPECT_LT(max_abs_diff(e.std_error, error), 1e-12);
  EXPECT_LT(max_abs_diff(e.variance_std_error, variance_error), 1e-12);
  EXPECT_NEAR(e.ess, (w.sum().square() / w.square().sum() / 15).item<double>(), 1e-12);
  EXPECT_EQ(e.from, ErrorFrom::kParticles);
  EXPECT_EQ(e.replicates, 3);
  EXPECT_EQ(e.particles, 15);
}

TEST(Expectation, DoesNotDependOnHowReplicatesAreCutIntoChunks) {
  const Ensemble all(4, 6, 2);
  std::vector<ExpectationSums> parts;
  for (int64_t r = 0; r < 4; ++r) {
    Ensemble one = all;
    one.h = all.h.slice(0, r, r + 1);
    one.log_w = all.log_w.slice(0, r, r + 1);
    parts.push_back(one.sums(0));
  }
  const ExpectationEstimate whole = pooled({all.sums(0)}), cut = pooled(parts);
  EXPECT_LT(max_abs_diff(whole.mean, cut.mean), 1e-12);
  EXPECT_LT(max_abs_diff(whole.std_error, cut.std_error), 1e-12);
  EXPECT_LT(max_abs_diff(whole.variance_std_error, cut.variance_std_error), 1e-12);
  expect_error(ErrorKind::kInternal, {"replicates"}, [] { pooled({}); });
}

TEST(Expectation, TakesItsErrorFromReplicatesOnceThereWasResampling) {
  const Ensemble s(3, 5, 3);
  const ExpectationEstimate e = pooled({s.sums(1)});
  EXPECT_EQ(e.from, ErrorFrom::kReplicates);
  const at::Tensor w = (s.log_w + 300).exp().unsqueeze(-1);
  const at::Tensor mean = (w * s.h).sum(at::IntArrayRef({0, 1})) / w.sum();
  const at::Tensor variance = (w * (s.h - mean).square()).sum(at::IntArrayRef({0, 1})) / w.sum();
  const auto error = [&](const at::Tensor& f) {
    return (1.5 * (w * f).sum(1).square().sum(0)).sqrt() / w.sum();
  };
  EXPECT_LT(max_abs_diff(e.mean, mean), 1e-12);
  EXPECT_LT(max_abs_diff(e.std_error, error(s.h - mean)), 1e-12);
  EXPECT_LT(max_abs_diff(e.variance_std_error, error((s.h - mean).square() - variance)), 1e-12);
}

TEST(Expectation, LeavesOutAReplicateWithoutWeight) {
  Ensemble s(2, 5, 5);
  s.log_w = at::stack({s.log_w[0], at::full({5}, -INFINITY, at::kDouble)});
  Ensemble alone = s;
  alone.h = s.h.slice(0, 0, 1);
  alone.log_w = s.log_w.slice(0, 0, 1);
  EXPECT_LT(max_abs_diff(pooled({s.sums(0)}).mean, pooled({alone.sums(0)}).mean), 1e-12);
}

TEST(Expectation, EveryNameGivesItsOutputs) {
  const auto target = TargetRegistry::instance().make("target", "u11", {2, at::kDouble, ""});
  const at::Tensor z = at::tensor({3.0, -4.0}, at::kDouble).view({1, 1, 2}).expand({2, 7, 2});
  for (const auto& name : testing::examples<ExpectationRegistry>()) {
    const auto function = ExpectationRegistry::instance().make("expectation", name);
    const auto outputs = static_cast<int64_t>(function->outputs(*target).size());
    EXPECT_EQ(function->values(*target, z).sizes(), (std::vector<int64_t>{2, 7, outputs})) << name;
    if (const auto truth = function->truth(*target)) {
      EXPECT_EQ(truth->size(0), outputs) << name;
    }
  }
  const auto first = [&](const char* name) {
    return ExpectationRegistry::instance().make("expectation", name)->values(*target, z)[1][3][0];
  };
  EXPECT_NEAR(first("moments").item<double>(), 3, 1e-12);
  EXPECT_NEAR(first("norm").item<double>(), 5, 1e-12);
  EXPECT_NEAR(first("radius2").item<double>(), 25, 1e-12);
  const auto plane = TargetRegistry::instance().make("target", "u2:4", {1, at::kDouble, ""});
  expect_error(ErrorKind::kArgument, {"modes", "mixture"}, [&] {
    ExpectationRegistry::instance().make("expectation", "modes")->outputs(*plane);
  });
}

std::vector<ExpectationSums> sums_of(const std::string& spec, const EstimateOptions& options,
                                     int64_t replicates, const std::string& name) {
  const std::shared_ptr<const Target> target =
      TargetRegistry::instance().make("target", spec, {replicates, at::kDouble, ""});
  const RunResults results = run_problems(ProblemSource::of(target), Estimator(options));
  std::vector<ExpectationSums> parts;
  for (const auto& [number, chunk] : results.chunks)
    parts.push_back(chunk.runs.front().expectations.at(name));
  return parts;
}

/// N((1, 1), 0.01 I): every moment is known.
TEST(Expectation, FindsTheMomentsOfANormalWithinItsErrors) {
  for (const std::string resampling : {"", "systematic:0.8"}) {
    EstimateOptions options{.base = "prior", .chains = 100, .seed = 7};
    options.expectations = {"moments"};
    options.resampling = resampling;
    const ExpectationEstimate e = pooled(sums_of("u6", options, 64, "moments"));
    EXPECT_EQ(e.from, resampling.empty() ? ErrorFrom::kParticles : ErrorFrom::kReplicates);
    EXPECT_LT(((e.mean - 1) / e.std_error).abs().max().item<double>(), 5) << resampling;
    EXPECT_LT(((e.variance - 0.01) / e.variance_std_error).abs().max().item<double>(), 5)
        << resampling;
    EXPECT_LT(e.std_error.max().item<double>(), 0.01) << resampling;
    EXPECT_GT(e.std_error.min().item<double>(), 0.0002) << resampling;
  }
}

/// The error that particles suggest is the spread of replicates: within four standard errors of a
/// standard deviation over 300 of them, 4 / sqrt(600) = 16%, and 9% for what the delta method of
/// second order leaves out at 200 chains.
TEST(Expectation, ErrorsOverParticlesAreTheSpreadOfReplicates) {
  EstimateOptions options{.base = "prior", .chains = 200, .seed = 3, .steps = 16};
  options.expectations = {"moments"};
  options.chunk = 300;
  const ExpectationSums all = sums_of("u10", options, 300, "moments").front();
  std::vector<at::Tensor> errors, variance_errors;
  const auto row = [](const at::Tensor& column, int64_t r) { return column.slice(0, r, r + 1); };
  for (int64_t r = 0; r < 300; ++r) {
    ExpectationSums one{row(all.log_total, r),
                        row(all.num_particles, r),
                        row(all.num_resamplings, r),
                        row(all.square, r),
                        row(all.mean, r),
                        row(all.variance, r),
                        {}};
    for (const at::Tensor& power : all.powers) one.powers.push_back(row(power, r));
    const ExpectationEstimate e = pooled({one});
    errors.push_back(e.std_error);
    variance_errors.push_back(e.variance_std_error);
  }
  const at::Tensor claimed = at::stack(errors).square().mean(0).sqrt();
  const at::Tensor ratio = claimed / all.mean.std(0, true);
  EXPECT_LT((ratio - 1).abs().max().item<double>(), 0.25) << ratio;
  const at::Tensor of_variance =
      at::stack(variance_errors).square().mean(0).sqrt() / all.variance.std(0, true);
  EXPECT_LT((of_variance - 1).abs().max().item<double>(), 0.25) << of_variance;
}

}  // namespace
}  // namespace crais
