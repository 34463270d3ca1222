// What is said of a result as a whole, and what a density without options comes to.
#include "evaluation/doubts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/rng.h"
#include "evaluation/summary.h"
#include "evidence/evidence.h"
#include "support/targets.h"

namespace crais {
namespace {

using Values = std::vector<double>;

/// Chunks of five replicates with these values, each with this error.
RunResults results_of(const Values& values, double error, int64_t flag = 0) {
  RunResults results;
  for (int64_t c = 0; 5 * c < static_cast<int64_t>(values.size()); ++c) {
    ChunkRun run{.method = "ais",
                 .log_normalizer = {values.begin() + 5 * c, values.begin() + 5 * (c + 1)},
                 .std_error = Values(5, error),
                 .bias = Values(5, -error * error / 2),
                 .ess = Values(5, 0.9),
                 .flags = std::vector<int64_t>(5, flag),
                 .cost = {10'000, 10'000}};
    ChunkResult chunk{
        .chunk = c, .indices = {5 * c, 5 * c + 1, 5 * c + 2, 5 * c + 3, 5 * c + 4}, .runs = {run}};
    results.chunks[c] = chunk;
  }
  return results;
}

double error_of(const RunResults& results) {
  return error_of_replicates(tables(results).front(), results);
}

std::vector<Doubt> doubts(const RunResults& results) {
  return doubts_of_replicates(tables(results).front(), results);
}

bool has(const std::vector<Doubt>& all, Doubt doubt) {
  return std::find(all.begin(), all.end(), doubt) != all.end();
}

const Values kAgree = {1.00, 1.02, 0.99, 1.01, 0.98, 1.00, 1.02, 0.99, 1.01, 0.98};

TEST(Doubts, OneReplicateDecides) {
  Values values = kAgree;
  EXPECT_FALSE(has(doubts(results_of(values, 0.02)), Doubt::kOne));
  values[3] = 2.5;  // of ten, a third of their sum
  EXPECT_TRUE(has(doubts(results_of(values, 0.5)), Doubt::kOne));
  EXPECT_FALSE(has(doubts(results_of(values, 1.0)), Doubt::kOne));
  values[3] = -2.5;  // a low one moves little
  EXPECT_FALSE(has(doubts(results_of(values, 0.5)), Doubt::kOne));
}

TEST(Doubts, TheWeightsOfAReplicateMayHaveNoVariance) {
  RunResults results = results_of(kAgree, 0.02);
  results.chunks.at(1).runs.front().flags[2] = kMissedTarget;
  EXPECT_FALSE(has(doubts(results), Doubt::kTail));
  results.chunks.at(1).runs.front().flags[2] = kFewEffective;
  EXPECT_TRUE(has(doubts(results), Doubt::kTail));
}

/// A chunk whose base is poor has large errors, and says so: it contradicts nobody.
TEST(Doubts, ReplicatesOfUnequalErrorsMayAgree) {
  Values values = kAgree;
  for (size_t i = 5; i < 10; ++i) values[i] -= 0.4;
  RunResults results = results_of(values, 0.02);
  EXPECT_TRUE(has(doubts(results), Doubt::kReplicates));
  results.chunks.at(1).runs.front().std_error = Values(5, 0.3);
  EXPECT_FALSE(has(doubts(results), Doubt::kReplicates));
}

TEST(Doubts, AHigherLowerBoundRefutes) {
  RunResults results = results_of(kAgree, 0.02);
  results.state.witness = {1.5, 0.03};
  EXPECT_EQ(doubts(results), (std::vector<Doubt>{Doubt::kRefuted}));
  results.state.witness = {1.05, 0.03};  // within its errors
  EXPECT_TRUE(doubts(results).empty());
  results.state.witness = {3.0, 2.0, /*is_doubtful=*/true};
  EXPECT_EQ(doubts(results), (std::vector<Doubt>{Doubt::kRefuted}));
  results.state.witness = {0.5, 0.03};  // a lower bound may lie anywhere below
  EXPECT_TRUE(doubts(results).empty());
}

TEST(Doubts, SettledParticlesGoElsewhere) {
  RunResults results = results_of(kAgree, 0.02);
  results.chunks[0].settled = {0.01, 0.003, 300};
  results.chunks[1].settled = {0.02, 0.003, 300};
  EXPECT_TRUE(doubts(results).empty());
  results.chunks[1].settled = {0.06, 0.003, 300};
  EXPECT_EQ(doubts(results), (std::vector<Doubt>{Doubt::kSettled}));
  results.chunks[1].settled = {0.06, 0.003, 4};  // hardly any forward particles to compare with
  EXPECT_TRUE(doubts(results).empty());
}

/// The spread of replicates that all miss the same neck says nothing of it.
TEST(ErrorOfReplicates, HasTheMassThatChainsMiss) {
  RunResults results = results_of(kAgree, 1e-4);
  const double spread = error_of(results);
  results.chunks[0].settled = {0.004, 0.003, 300};
  results.chunks[1].settled = {0.003, 0.003, 300};
  EXPECT_EQ(error_of(results), spread);  // by chance
  results.chunks[0].settled = {0.01, 0.003, 300};
  EXPECT_EQ(error_of(results), spread);  // beyond chance, but not clearly
  results.chunks[0].settled = {0.023, 0.003, 300};
  results.chunks[1].settled = {0.013, 0.003, 300};
  const double chance = std::sqrt(0.003 / 2 / 300);
  EXPECT_NEAR(error_of(results), std::hypot(spread, std::sqrt(0.015 * 0.015 - chance * chance)),
              1e-9);
}

TEST(ErrorOfReplicates, IsTheGreaterOfTwo) {
  const double by_spread = std::sqrt(0.002 / 9 / 10);
  EXPECT_NEAR(error_of(results_of(kAgree, 1e-4)), by_spread, 1e-9);
  EXPECT_NEAR(error_of(results_of(kAgree, 0.2)), 0.2 / std::sqrt(10.0),
              1e-9);  // by their own account
}

TEST(Doubts, MostReplicatesAreFlaggedOrNotFinite) {
  EXPECT_TRUE(has(doubts(results_of(kAgree, 0.02, kModes)), Doubt::kMostFlagged));
  RunResults results = results_of(kAgree, 0.02);
  results.chunks[0].runs[0].num_nonfinite = 5;
  EXPECT_TRUE(doubts(results).empty());
  results.chunks[0].runs[0].num_nonfinite = 500;
  EXPECT_TRUE(has(doubts(results), Doubt::kUndefined));
}

/// exp(0.5 x + 6 x^2 - x^4), whose lesser well holds 16%: log Z = 9.3745.
FunctionTarget double_well() {
  const auto density = [](const at::Tensor& z) {
    const at::Tensor x = z.select(-1, 0);
    return 0.5 * x + 6 * x.square() - x.pow(4);
  };
  return testing::replicated(1, density, 10);
}

TEST(SecondOpinion, FlagsABaseThatMissesAMode) {
  EstimateOptions options{.base = "laplace", .steps = 48, .witness = true, .chunk = 5};
  const RunResults run = estimate_evidence(double_well(), options).run;
  EXPECT_TRUE(has(doubts(run), Doubt::kRefuted));
  options.base = "mixture";
  const Result right = estimate_evidence(double_well(), options);
  EXPECT_TRUE(doubts(right.run).empty());
  EXPECT_NEAR(right.value.mean().item<double>(), 9.3745, 0.01);
}

TEST(Auto, OfADensityIsRightWithinItsBudget) {
  EstimateOptions options{.budget = 5e4, .resampling = "systematic:0.5", .chunk = 5};
  const Result found = estimate_evidence(double_well(), options);
  EXPECT_EQ(found.base, "mixture");
  EXPECT_NEAR(found.value.mean().item<double>(), 9.3745, 0.01);
  EXPECT_LE(static_cast<double>(found.cost.densities), 1.02 * 10 * 5e4);
  EXPECT_GE(static_cast<double>(found.cost.densities), 0.5 * 10 * 5e4);
}

}  // namespace
}  // namespace crais
