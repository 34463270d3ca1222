// Estimates that go on in rounds until their error is small.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/rng.h"
#include "evaluation/driver.h"
#include "evidence/evidence.h"
#include "support/expect_error.h"
#include "support/statistics.h"
#include "support/targets.h"
#include "util/error.h"
#include "util/parallel.h"

namespace crais {
namespace {

using testing::replicated;

constexpr int64_t kRoundReplicates = 4;

/// Replicates of N(z; shift, sd^2 I) with Z = 1, in `dim` dimensions.
std::shared_ptr<const Target> normal(int64_t dim, double shift, double sd) {
  const double log_norm = static_cast<double>(dim) * (std::log(sd) + 0.5 * std::log(2 * M_PI));
  const auto density = [=](const at::Tensor& z) {
    return -0.5 * ((z - shift) / sd).square().sum(-1) - log_norm;
  };
  return std::make_shared<FunctionTarget>(replicated(dim, density, kRoundReplicates));
}

EstimateOptions to_error(double error, uint64_t seed = 0) {
  return {.base = "prior",
          .error = error,
          .max_evaluations = 1e6,
          .seed = seed,
          .resampling = "systematic:0.5",
          .chunk = kRoundReplicates};
}

/// What a run of one chunk has found.
struct Found {
  std::vector<Round> rounds;
  std::optional<double> barrier;
  std::optional<Plan> plan;
  std::vector<ChunkRun> runs;
  Cost before;  // of the fit, the rounds and the witness
};

Found found_by(const Target& target, const EstimateOptions& options) {
  const RunResults run = estimate_evidence(target, options, {.threads = 1}).run;
  const ChunkResult& chunk = run.chunks.at(0);
  return {run.state.rounds.each, run.state.rounds.barrier, run.state.plan, chunk.runs,
          run.state.fitting + run.state.tuning + chunk.tuning};
}

double mean_of(const ChunkRun& run) {
  return at::tensor(run.log_normalizer, at::kDouble).mean().item<double>();
}

TEST(EvidenceDriver, FitsReplicatesOnce) {
  const auto funnel = [](const at::Tensor& z) {
    const at::Tensor v = z.select(-1, 0), x = z.slice(-1, 1);
    return -v.square() / 18 - 0.5 * x.square().sum(-1) * (-v).exp() - 2 * v;
  };
  EstimateOptions options = to_error(0.1);
  options.base = "mixture:128";
  options.chunk = 2;
  const OneThreadPerOperation one_thread;
  const FunctionTarget three = replicated(3, funnel, 3);
  const TunedEstimator tuned = Estimator(options, evidence_driver()).tune(three);
  const TunedState& state = tuned.state();
  ASSERT_TRUE(state.fit && state.fit->bijection);
  EXPECT_EQ(state.fit->num_problems(), 1);
  EXPECT_EQ(state.fitting.densities, state.fit->cost.densities);
  EXPECT_EQ(state.plan->betas.size(1), state.fit->map.num_problems());
  const ChunkResult found = tuned.estimate(0, three);
  EXPECT_EQ(found.runs.front().log_normalizer.size(), 3u);
  EXPECT_EQ(found.base.densities, 0);
}

/// Two searches must agree on the parts of a base, or every estimate is flagged.
TEST(EvidenceDriver, DoubtsSearchesThatContradictEachOther) {
  const OneThreadPerOperation one_thread;
  int64_t calls = 0;
  // From call number `change` on, the density is e times as high.
  const auto is_doubtful = [&](int64_t change) {
    const auto density = [&calls, change](const at::Tensor& z) {
      return -2 * at::log1p(z.square() / 3).sum(-1) + (++calls >= change ? 1.0 : 0.0);
    };
    calls = 0;
    at::Generator rng = make_generator(3);
    const auto rule = evidence_driver()->rule("mixture:64,rounds=1");
    return rule->build(replicated(2, density, 1), rng).ambiguous.item<bool>();
  };
  EXPECT_FALSE(is_doubtful(std::numeric_limits<int64_t>::max()));
  EXPECT_TRUE(is_doubtful(5 * calls / 8));
}

/// A narrow mode that appears after the climbs is met by the chains of the last trials alone.
TEST(EvidenceDriver, AddsTheModesThatChainsMeet) {
  const OneThreadPerOperation one_thread;
  int64_t calls = 0;
  const auto parts_near_6 = [&](double change) {
    const auto density = [&calls, change](const at::Tensor& z) {
      const at::Tensor wide = -2 * at::log1p(z.square() / 48).sum(-1),
                       narrow = -0.5 * ((z - 6) / 0.02).square().sum(-1) + 8;
      return static_cast<double>(++calls) >= change ? at::logaddexp(wide, narrow) : wide;
    };
    calls = 0;
    at::Generator rng = make_generator(3);
    const Base base = evidence_driver()->rule("mixture")->build(replicated(1, density, 1), rng);
    return ((base.map.loc() - 6).abs() < 0.05).sum().item<int64_t>();
  };
  EXPECT_EQ(parts_near_6(INFINITY), 0);
  EXPECT_EQ(parts_near_6(0.93 * static_cast<double>(calls)), 1);
}

TEST(Rounds, DoubleUntilTheErrorIsSmallAndEstimateAfresh) {
  const auto target = normal(6, 1.5, 0.4);
  const Found found = found_by(*target, to_error(0.02));
  ASSERT_GE(found.rounds.size(), 3u);
  EXPECT_NEAR(found.rounds.front().evaluations, 2000, 1) << "draws of the base";
  for (size_t r = 2; r < found.rounds.size(); ++r) {
    const double ratio = found.rounds[r].evaluations / found.rounds[r - 1].evaluations;
    EXPECT_NEAR(ratio, 2.0, 0.4) << "round " << r;
  }
  const Round estimate = round_of(found.runs.front());
  // The length of the estimate follows from the error of the last round, with a margin of a half.
  const auto predicted = [&](const Round& round) {
    return std::max(1.0, 1.5 * std::pow(round.error / 0.02, 2));
  };
  const double longer = estimate.evaluations / found.rounds.back().evaluations;
  EXPECT_NEAR(longer / predicted(found.rounds.back()), 1.0, 0.2);
  EXPECT_LE(predicted(found.rounds.back()), 8);
  EXPECT_GT(predicted(found.rounds[found.rounds.size() - 2]), 8);
  EXPECT_NE(mean_of(found.runs.front()), found.rounds.back().log_normalizer);
  EXPECT_NEAR(mean_of(found.runs.front()), 0.0, 5 * estimate.error);
}

/// An estimate that is as short as its error allows would waste the fit before it.
TEST(Rounds, GiveTheEstimateAFifthOfAllEvaluations) {
  EstimateOptions options = to_error(0.5);
  options.base = "mixture";
  const auto two_modes = [](const at::Tensor& z) { return -0.5 * (z.abs() - 3).square().sum(-1); };
  const Found found = found_by(replicated(1, two_modes, kRoundReplicates), options);
  ASSERT_EQ(found.rounds.size(), 1u);
  EXPECT_FALSE(found.plan->has_moves());
  const auto estimate = static_cast<double>(found.runs.front().cost.densities);
  const auto all = static_cast<double>(found.before.densities) + estimate;
  EXPECT_NEAR(estimate / all, 0.2, 0.03);
}

/// A base far from the density: the weights of chains of 300 steps vary by much more than one.
TEST(Rounds, LengthenChainsRatherThanAddToThem) {
  const auto target = normal(60, 1.5, 0.4);
  EstimateOptions options = to_error(0.2);
  options.resampling = "";
  const Found found = found_by(*target, options);
  ASSERT_TRUE(found.plan);
  EXPECT_LT(found.plan->num_particles, 4 * 16);
  EXPECT_GT(found.plan->num_steps(), 2 * 300);
  EXPECT_NEAR(mean_of(found.runs.front()), 0.0, 5 * round_of(found.runs.front()).error);
}

void expect_mean_of_one(const std::vector<double>& ratios, double most_error) {
  const at::Tensor ratio = at::tensor(ratios, at::kDouble);
  EXPECT_LT(std::abs(testing::z_score(ratio, 1)), 3.5);
  EXPECT_LT(testing::std_error(ratio), most_error);
}

/// The length is frozen before the particles of the estimate are drawn, so that it stays unbiased
/// whatever the rounds have found.
TEST(Rounds, LeaveTheEstimateUnbiasedAndItsErrorsTrue) {
  constexpr int64_t kRuns = 10;
  std::set<size_t> lengths;
  std::vector<double> ratios;
  double squares = 0;
  int64_t beyond = 0;
  const auto target = normal(3, 1.0, 0.35);
  for (int64_t seed = 0; seed < kRuns; ++seed) {
    const Found found = found_by(*target, to_error(0.025, static_cast<uint64_t>(seed)));
    const ChunkRun& run = found.runs.front();
    lengths.insert(found.rounds.size());
    for (const double value : run.log_normalizer) ratios.push_back(std::exp(value));
    const Round estimate = round_of(run);
    const double z =
        (mean_of(run) - at::tensor(run.bias, at::kDouble).mean().item<double>()) / estimate.error;
    squares += z * z;
    beyond +=
        std::abs(z) > 3.18 ? 1 : 0;  // the 97.5% quantile of Student's t, 3 degrees of freedom
  }
  EXPECT_GE(lengths.size(), 2u) << "the rounds have nothing to decide";
  expect_mean_of_one(ratios, 0.02);
  EXPECT_LE(beyond, 3) << "of " << kRuns;
  EXPECT_GT(squares / kRuns, 0.3);
  EXPECT_LT(squares / kRuns, 1.8);
}

TEST(Rounds, AreFlaggedWhereEvaluationsRunOut) {
  const auto target = normal(6, 1.5, 0.4);
  EstimateOptions options = to_error(1e-4);
  options.max_evaluations = 60'000;
  const Result found = estimate_evidence(*target, options, {.threads = 1});
  for (int64_t p = 0; p < kRoundReplicates; ++p)
    EXPECT_TRUE(found.flags[p].item<int64_t>() & kMissedTarget);
  EXPECT_LE(found.summary.all_evaluations(), 1.05 * 60'000);
  EXPECT_GE(found.summary.all_evaluations(), 0.7 * 60'000);
  EXPECT_TRUE(found.summary.doubts.empty()) << "of single estimates, not of the whole";
  options.error = 0.5;
  EXPECT_EQ(estimate_evidence(*target, options, {.threads = 1}).flags.sum().item<int64_t>(), 0);
}

/// A normal is covered by a wider one, so its weights are bounded: transitions would not pay.
TEST(Rounds, DrawFromABaseThatCoversTheDensity) {
  const auto target = normal(4, 0.3, 0.8);
  std::vector<double> ratios;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const Found found = found_by(*target, to_error(0.05, seed));
    ASSERT_EQ(found.rounds.size(), 1u);
    ASSERT_FALSE(found.plan->has_moves());
    EXPECT_EQ(found.runs.front().cost.gradients, 0);
    EXPECT_EQ(found.runs.front().cost.densities, found.plan->num_particles * kRoundReplicates);
    for (const double value : found.runs.front().log_normalizer) ratios.push_back(std::exp(value));
  }
  expect_mean_of_one(ratios, 0.01);
}

/// Draws z from N(0, I) of weight exp(c |z|^2 / 2) have the Pareto tail index c in the plane. With
/// `share` of such a weight, the rest being 1, log Z = log(1 - share + share / (1 - c)).
TEST(Rounds, DrawWhereChainsConfirmDraws) {
  const auto plans_with_moves = [](double index, double share) {
    const auto density = [=](const at::Tensor& z) {
      const at::Tensor half = 0.5 * z.square().sum(-1);
      return at::log1p(share * at::expm1(index * half)) - half - std::log(2 * M_PI);
    };
    const FunctionTarget target = replicated(2, density, kRoundReplicates);
    int64_t with_moves = 0;
    for (uint64_t seed = 0; seed < 4; ++seed) {
      const Found found = found_by(target, to_error(0.05, seed));
      with_moves += found.plan->has_moves() ? 1 : 0;
      EXPECT_LE(found.rounds.size(), 2u);
      EXPECT_NEAR(mean_of(found.runs.front()), std::log1p(share * index / (1 - index)), 0.05);
    }
    return with_moves;
  };
  EXPECT_LE(plans_with_moves(0.34, 0.2), 1);  // nearly all weights are alike
  EXPECT_GE(plans_with_moves(0.46, 1.0), 3);  // chains are not much dearer
}

/// Student's t with three degrees of freedom has more mass far out than any normal.
TEST(Rounds, AnnealWhereTheTailOfTheWeightsIsHeavy) {
  const auto density = [](const at::Tensor& z) {
    return -2 * (1 + z.square() / 3).log().sum(-1) - 2 * std::log(1.5 * M_PI) + std::log(3.0);
  };
  const FunctionTarget tails = replicated(2, density, kRoundReplicates);
  EXPECT_TRUE(found_by(tails, to_error(0.1)).plan->has_moves());
}

/// Along the geometric path from N(0, I) to N(m, I) the work rate is m . z plus a constant.
TEST(Rounds, MeasureTheBarrier) {
  const Found found = found_by(*normal(4, 1.5, 1.0), to_error(0.05));
  ASSERT_TRUE(found.barrier);
  EXPECT_NEAR(*found.barrier, 1.5 * std::sqrt(4.0), 0.245);
  EXPECT_FALSE(found_by(*normal(4, 0.3, 1.0), to_error(0.05)).barrier);  // draws
}

TEST(Rounds, TakeEqualStepsWhereParticlesFindNoWay) {
  EstimateOptions options = to_error(0.1);
  options.schedule = "cess:0.9";
  options.max_steps = 3;  // it would take more
  const Result found = estimate_evidence(*normal(2, 3.0, 0.3), options, {.threads = 1});
  EXPECT_NEAR(found.value.mean().item<double>(), 0.0, 0.5);
  const at::Tensor betas = found.run.state.plan->betas.select(1, 0);
  EXPECT_TRUE(at::allclose(betas, at::linspace(0, 1, betas.size(0), at::kDouble)));
}

/// Throws Error kInterrupted from call number `last` on.
class Stopped : public Target {
 public:
  Stopped(std::shared_ptr<const Target> target, std::shared_ptr<std::atomic<int64_t>> calls,
          int64_t last)
      : target_(std::move(target)), calls_(std::move(calls)), last_(last) {
    traits_.can_select = true;
  }
  int64_t num_problems() const override { return target_->num_problems(); }
  int64_t dim() const override { return target_->dim(); }
  at::Tensor log_density(const at::Tensor& z) const override {
    if (++*calls_ >= last_) throw Error(ErrorKind::kInterrupted, "interrupted");
    return target_->log_density(z);
  }
  std::shared_ptr<const Target> select(const at::Tensor& index) const override {
    return std::make_shared<Stopped>(target_->select(index), calls_, last_);
  }

 private:
  std::shared_ptr<const Target> target_;
  std::shared_ptr<std::atomic<int64_t>> calls_;
  int64_t last_;
};

TEST(Rounds, LeaveTheLastOneWhereTheyAreStopped) {
  class Listening : public RunObserver {};
  const EstimateOptions options = to_error(1e-4);
  const auto stopped_after = [&](int64_t last) {
    Listening observer;
    const Stopped target(normal(3, 1.0, 0.5), std::make_shared<std::atomic<int64_t>>(0), last);
    return run_problems(ProblemSource::of(target.shared()), Estimator(options, evidence_driver()),
                        {1, {}, &observer});
  };
  EXPECT_TRUE(stopped_after(2).chunks.empty());
  const RunResults found = stopped_after(1000);
  ASSERT_EQ(found.chunks.size(), 1u);
  const ChunkResult& chunk = found.chunks.at(0);
  EXPECT_TRUE(chunk.is_cut);
  const std::vector<Round>& rounds = found.state.rounds.each;
  ASSERT_FALSE(rounds.empty());
  EXPECT_EQ(mean_of(chunk.runs.front()), rounds.back().log_normalizer);
  for (const int64_t flags : chunk.runs.front().flags) EXPECT_TRUE(flags & kMissedTarget);
}

TEST(Rounds, AreOfReplicatesThatAreAnnealed) {
  EstimateOptions options = to_error(0.1);
  options.budget = 1000;
  expect_error(ErrorKind::kArgument, {"`error`", "exclude each other"}, [&] { check(options); });
  options.budget.reset();
  options.error = 0;
  expect_error(ErrorKind::kArgument, {"`error`", "above 0"}, [&] { check(options); });
  options.error = 0.1;
  const FunctionTarget many(
      {3, 2, at::kDouble},
      [](const at::Tensor& z, const at::Tensor& /*index*/) { return -0.5 * z.square().sum(-1); });
  expect_error(ErrorKind::kArgument, {"`error`", "control"},
               [&] { estimate_log_normalizer(many, options); });
  options.methods = {"iwae:10"};
  options.resampling = "";
  expect_error(ErrorKind::kArgument, {"`error`", "annealed"},
               [&] { estimate_evidence(*normal(2, 0, 1), options); });
}

}  // namespace
}  // namespace crais
