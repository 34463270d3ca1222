#include <gtest/gtest.h>

#include "evaluation/choices.h"
#include "support/expect_error.h"
#include "support/targets.h"

namespace crais {
namespace {

using testing::Counting;
using testing::DiagonalGaussian;

/// A Gaussian with an encoder of its own, and a curvature so many times too large (0: damaged).
class Encoded : public DiagonalGaussian {
 public:
  Encoded(int64_t num_problems, double encoder_sd, double stiffness = 1)
      : DiagonalGaussian(num_problems, {1.0, -2.0}, {0.3, 0.5}, 0.7),
        sd_(encoder_sd),
        stiffness_(stiffness) {}
  std::optional<AffineMap> amortised_base() const override {
    return AffineMap(testing::row({1.0, -2.0}).repeat({num_problems(), 1}),
                     sd_ * testing::row({0.3, 0.5}).repeat({num_problems(), 1}));
  }
  at::Tensor curvature(const at::Tensor& z) const override {
    if (stiffness_ == 0) throw data_error("a file of the target is damaged");
    return stiffness_ * DiagonalGaussian::curvature(z);
  }
  std::shared_ptr<const Target> select(const at::Tensor& index) const override {
    return std::make_shared<Encoded>(index.numel(), sd_, stiffness_);
  }

 private:
  double sd_, stiffness_;
};

/// Two modes, of which a climb finds one.
FunctionTarget two_modes(double left, bool can_select = true) {
  const auto density = [left](const at::Tensor& z) {
    const at::Tensor x = z.squeeze(-1);
    return at::logaddexp(-0.5 * (x - 1.2).square() / 0.05, -0.5 * (x - left).square() / 0.05);
  };
  if (!can_select) return FunctionTarget({8, 1}, density);
  return FunctionTarget({8, 1}, [=](const at::Tensor& z, const at::Tensor&) { return density(z); });
}

EstimateOptions brief() {
  return {.chains = 16, .steps = 8, .pilot_chains = 8, .pilot_problems = 4};
}

TEST(BaseChoice, TrustsLaplaceWhereNothingIsClearlyBetter) {
  const BaseChoice choice = choose_base(EstimatorParts(brief()), Encoded(4, 0.5), 4);
  EXPECT_EQ(choice.rule->name, "laplace");
  ASSERT_TRUE(choice.plan);
  EXPECT_EQ(choice.plan->num_steps(), 8);
  EXPECT_EQ(choice.plan->num_particles, 16);
}

/// A target whose first candidate takes many starts.
class Searched : public DiagonalGaussian {
 public:
  Searched() : DiagonalGaussian(4, {1.0, -2.0}, {0.3, 0.5}, 0.7) {
    traits_.may_be_multimodal = true;
  }
};

std::string first_candidate(const EstimateOptions& options, const Target& target,
                            int64_t num_problems) {
  return base_candidates(EstimatorParts(options), target, num_problems).front()->name;
}

double expected_cost(const std::string& name, const Target& target) {
  return *make_base(name)->expected_cost(target);
}

TEST(BaseCandidates, RefineAFitWhereThatIsAFifthOfTheCost) {
  EstimateOptions options = brief();
  const Encoded target(4, 0.5);
  const double refining = expected_cost("variational", target) - expected_cost("laplace", target);
  options.budget = 5 * refining;
  EXPECT_EQ(first_candidate(options, target, 1000), "variational:1");
  options.budget = 5 * refining - 1;
  EXPECT_EQ(first_candidate(options, target, 1000), "laplace");
  options.budget.reset();
  options.steps = 70;
  EXPECT_EQ(first_candidate(options, target, 4), "variational:1.1");
  EXPECT_EQ(first_candidate(options, Searched(), 4), "variational:1.1,from=modes");
}

TEST(BaseCandidates, CostTwoFifthsOfABudgetAtMost) {
  const Searched target;
  EstimateOptions options = brief();
  double dearest = 0;
  for (const double budget : {20, 100, 256, 600, 1024, 3000, 10'000}) {
    options.budget = budget;
    for (const int64_t problems : {1, 10'000}) {
      const std::string name = first_candidate(options, target, problems);
      EXPECT_LE(expected_cost(name, target), budget * (problems == 1 ? 0.2 : 0.4)) << name;
      dearest = std::max(dearest, expected_cost(name, target));
    }
  }
  EXPECT_EQ(dearest, expected_cost("variational:1,from=modes", target));
  options.budget = 20;
  EXPECT_EQ(first_candidate(options, target, 10'000), "prior");
}

TEST(BaseChoice, LeavesLaplaceWhereAnotherFindsClearlyMore) {
  EstimateOptions options = brief();
  options.pilot_problems = 8;
  const FunctionTarget whole = two_modes(-1.2, /*can_select=*/false);  // as a search needs to
  EXPECT_EQ(choose_base(EstimatorParts(options), whole, 8).rule->name, "prior");
}

TEST(BaseChoice, SearchesForModesWherePilotsHaveSeveral) {
  EstimateOptions options = brief();
  options.chains = 64;
  EXPECT_EQ(choose_base(EstimatorParts(options), two_modes(-4), 8).rule->name,
            "variational:1,from=modes");
}

/// A search finds more modes in every batch.
class Comb : public FunctionTarget {
 public:
  Comb()
      : FunctionTarget({8, 4}, [](const at::Tensor& z, const at::Tensor& /*rows*/) {
          return (2 * at::cos(4 * z) - 0.5 * (z - 9).square()).sum(-1);
        }) {
    traits_.may_be_multimodal = true;
  }
};

TEST(BaseChoice, PassesOverASearchThatTakesMoreThanItsShareOfABudget) {
  const Comb comb;
  EstimateOptions options = brief();
  at::Generator rng = make_generator(1);
  const auto fitted = static_cast<double>(make_base("modes")->build(comb, rng).cost.densities) / 8;
  EXPECT_LT(expected_cost("modes", comb), 0.7 * fitted);
  for (const double share : {1.5, 0.8}) {
    options.budget = share * fitted / 0.4;
    const std::string chosen = choose_base(EstimatorParts(options), comb, 1'000'000).rule->name;
    EXPECT_EQ(chosen.find("modes") != std::string::npos, share > 1) << chosen;
    EXPECT_NE(chosen, "prior");  // one normal is better
  }
}

TEST(BaseChoice, CostsWhatItsTrialsAsk) {
  const DiagonalGaussian inner(4, {1.0, -2.0}, {0.3, 0.5}, 0.0);
  const Counting target(inner);
  const EstimateOptions options = brief();
  const BaseChoice choice = choose_base(EstimatorParts(options), target, 4);
  // Laplace and prior: each a pilot of 8 and a trial of 16 chains; what Laplace fits comes on top,
  // eight rounds of a curvature (counted as three evaluations) and four steps, and the start.
  const int64_t annealed = 2 * 4 * (8 + 16) * (1 + 8), fitted = 4 * (1 + 8 * (3 + 4));
  EXPECT_EQ(choice.cost.gradients, annealed + fitted);
  EXPECT_EQ(target.gradients, annealed + 4 * (1 + 8 * 4));
}

TEST(BaseChoice, WithoutAnnealingIsTheEncoderIfThereIsOne) {
  EstimateOptions options = brief();
  options.methods = {"iwae:10"};
  const EstimatorParts parts(options);
  EXPECT_EQ(choose_base(parts, Encoded(4, 1.0), 4).rule->name, "encoder");
  EXPECT_EQ(choose_base(parts, DiagonalGaussian(4, {1.0}, {0.3}, 0.0), 4).rule->name, "laplace");
  EXPECT_EQ(choose_base(parts, Encoded(4, 1.0), 4).cost, Cost{});
}

TEST(BaseChoice, TakesLaplaceOnTrustWhereABudgetLeavesNoPilot) {
  EstimateOptions options = brief();
  options.budget = 60;
  const BaseChoice choice = choose_base(EstimatorParts(options), two_modes(-1.2), 8);
  EXPECT_EQ(choice.rule->name, "laplace:1,rounds=2");
  EXPECT_FALSE(choice.plan);
  EXPECT_EQ(choice.cost, Cost{});
}

/// A schedule that no base but a perfect one survives.
TEST(BaseChoice, PassesOverABaseThatItsScheduleCannotBridgeFrom) {
  EstimateOptions options = brief();
  options.schedule = "cess:0.95";
  options.step_size = 0.3;
  options.max_steps = 40;  // far too few from the prior
  const DiagonalGaussian target(4, {30.0, -20.0}, {0.05, 0.03}, 0.0);
  const BaseChoice choice = choose_base(EstimatorParts(options), target, 4);
  EXPECT_EQ(choice.rule->name, "laplace");
  options.max_steps = 20;
  const BaseChoice cheaper = choose_base(EstimatorParts(options), target, 4);
  EXPECT_GT(choice.cost.gradients, cheaper.cost.gradients);  // what failed is counted too
}

/// Only that: any other error ends the choice.
TEST(BaseChoice, HidesNoOtherError) {
  expect_error(ErrorKind::kData, {"damaged"},
               [] { choose_base(EstimatorParts(brief()), Encoded(4, 0.5, 0), 4); });
}

/// Chains end farther out than the base is wide: gradients tell what the curvature misstates.
TEST(BaseChoice, RefitsABaseThatIsTooNarrow) {
  EstimateOptions options = brief();
  const auto chosen = [&](double stiffness) {
    return choose_base(EstimatorParts(options), Encoded(4, 0.4, stiffness), 1000).rule->name;
  };
  EXPECT_EQ(chosen(4), "laplace");
  options.budget = 2000;
  EXPECT_EQ(chosen(4), "variational:1,from=variational:1,rounds=6,observed=1");
  EXPECT_EQ(chosen(1), "variational:1");
}

}  // namespace
}  // namespace crais
