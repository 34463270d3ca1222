// Resampling is unbiased, and SMC's E[Zhat] = Z.
#include "samplers/resampling.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/log_math.h"
#include "core/rng.h"
#include "estimates/estimate.h"
#include "samplers/plan.h"
#include "support/statistics.h"
#include "support/targets.h"

namespace crais {
namespace {

using testing::LogGamma;
using testing::max_abs_diff;

class EveryScheme : public ::testing::TestWithParam<std::string> {
 protected:
  static std::unique_ptr<Resampling> make(const std::string& threshold = "") {
    return ResamplingRegistry::instance().make("resampling", GetParam() + threshold);
  }
};
INSTANTIATE_TEST_SUITE_P(Registered, EveryScheme, ::testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const auto& [name, entry] :
                                ResamplingRegistry::instance().entries())
                             names.push_back(name);
                           return names;
                         }()));

at::Tensor counts(const at::Tensor& ancestors) {
  return at::zeros(ancestors.sizes(), at::kDouble)
      .scatter_add(1, ancestors, at::ones(ancestors.sizes(), at::kDouble));
}

TEST_P(EveryScheme, CopiesEachParticleByItsWeight) {
  const at::Tensor w = at::tensor({0.05, 0.33, 0.0, 0.57, 0.05}, at::kDouble);
  at::Generator rng = make_generator(1);
  const at::Tensor copies = counts(make()->ancestors(w.log().repeat({20000, 1}) - 700.0, rng));
  EXPECT_EQ(copies.select(1, 2).sum().item<double>(), 0);
  const at::Tensor z = testing::z_scores(copies, 5 * w).index_select(0, at::tensor({0, 1, 3, 4}));
  EXPECT_LT(z.abs().max().item<double>(), 5);
  EXPECT_TRUE((copies.sum(1) == 5).all().item<bool>());
}

TEST(Systematic, StaysWithinOneOfTheExpectedNumber) {
  at::Generator rng = make_generator(2);
  const at::Tensor log_w = 2 * at::randn({500, 40}, rng, at::kDouble);
  const auto scheme = ResamplingRegistry::instance().make("resampling", "systematic");
  const at::Tensor copies = counts(scheme->ancestors(log_w, rng));
  EXPECT_LT(max_abs_diff(copies, 40 * log_normalise(log_w).exp()), 1.0);
}

TEST_P(EveryScheme, LeavesEqualWeightsAloneAndIsDueBelowItsThreshold) {
  const at::Tensor log_w = at::tensor({0.0, 0.0, 0.0, -50.0, -50.0, 0.0}, at::kDouble).view({2, 3});
  const at::Tensor all = at::ones({2}, at::kDouble);
  EXPECT_TRUE(at::equal(make(":0.5")->due(log_w, all), at::tensor({0, 1}).to(at::kBool)));
  EXPECT_FALSE(make(":0")->due(log_w, all).any().item<bool>());
  // Relative to the last time: the second problem has no more to lose.
  EXPECT_TRUE(at::equal(make(":0.5,of=last")->due(log_w, all), at::tensor({0, 1}).to(at::kBool)));
  EXPECT_FALSE(make(":0.5,of=last")->due(log_w, ess(log_w)).any().item<bool>());
  EXPECT_TRUE(at::equal(make(":0.5")->due(log_w, ess(log_w)), at::tensor({0, 1}).to(at::kBool)));
}

AnnealResult run_smc(const Target& target, const Resampling* resampling, int64_t particles,
                     uint64_t seed) {
  const auto path = PathRegistry::instance().make("path", "geometric");
  const auto kernel = TransitionRegistry::instance().make("kernel", "ghmc:0.5", {1});
  const Problem problem(borrow(target),
                        AffineMap::identity(target.num_problems(), target.dim(), at::kDouble));
  at::Generator rng = make_generator(seed);
  const Plan plan{at::tensor({0.0, 0.1, 0.25, 0.5, 0.75, 1.0}, at::kDouble).unsqueeze(1),
                  at::full({5, 1}, 0.6, at::kDouble)};
  return anneal(problem, *path, plan, *kernel, particles, rng, resampling);
}

TEST_P(EveryScheme, MakesAnUnbiasedSmcSampler) {
  const LogGamma target(3000, {3.0, 4.0});
  const auto scheme = make(":0.9");
  const AnnealResult run = run_smc(target, scheme.get(), 8, 3);
  const at::Tensor ratio = (log_mean_exp(run.log_w) - *target.true_log_normalizer()).exp();
  EXPECT_LT(std::abs(testing::z_score(ratio, 1)), 5);
  EXPECT_LT(testing::std_error(ratio), 0.03);
  const at::Tensor own = at::arange(8).expand({3000, 8});
  EXPECT_GT((run.genealogy.roots != own).to(at::kDouble).mean().item<double>(), 0.2);
}

TEST(Smc, ErrorsKnowOfCommonAncestors) {
  // The spread of log Zhat over problems, against what each problem says of itself.
  const LogGamma target(4000, {3.0, 4.0});
  for (const auto& [spec, ignorant] :
       {std::pair<std::string, double>{"multinomial:1", 0.7}, {"systematic:0.9", 0.9}}) {
    SCOPED_TRACE(spec);
    const auto scheme = ResamplingRegistry::instance().make("resampling", spec);
    const AnnealResult run = run_smc(target, scheme.get(), 64, 6);
    const double spread = log_mean_exp(run.log_w).std().item<double>();
    const auto mean_error = [&](const Genealogy& genealogy) {
      return log_normalizer(run.log_w, genealogy).std_error.square().mean().sqrt().item<double>();
    };
    EXPECT_NEAR(mean_error(run.genealogy) / spread, 1.0, 0.12);
    EXPECT_LT(mean_error({}) / spread, ignorant);  // and it is wrong not to
    Genealogy other = run.genealogy;
    other.independent_draws = !other.independent_draws;
    EXPECT_GT(std::abs(mean_error(other) / spread - 1), 0.15);
  }
}

}  // namespace
}  // namespace crais
