// Coupled chains: each moves as alone, those that meet stay together, and the times until they meet
// bound the distance of draws from the target. Broken twins fail the same tests.
#include "samplers/coupled.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "core/rng.h"
#include "core/transition.h"
#include "support/invariance.h"
#include "support/targets.h"

namespace crais {
namespace {

using testing::DiagonalGaussian;
using testing::LogGamma;

enum class PairFault {
  kNone,
  kProjected,      // the other noise loses its part along the difference, in place of turning it
  kReusedUniform,  // the uniform number that chose between same and mirrored decides the test too
  kTwoUniforms     // each chain has a test of its own
};

/// `moved_together` as written in papers, or a broken twin.
Pairs by_the_book(const Problem& problem, const Pairs& from, double eps, PairFault fault,
                  at::Generator& rng) {
  const auto uniform = [&] {
    return at::empty_like(from.first.log_gamma).uniform_(0, 1, rng).unsqueeze(-1);
  };
  const auto mean = [&](const Particles& x) { return x.e + 0.5 * eps * eps * x.grad_log_gamma; };
  const auto norm = [](const at::Tensor& x) { return x.square().sum(-1, true); };
  const at::Tensor xi = at::empty_like(from.first.e).normal_(0, 1, rng), u = uniform();
  const at::Tensor shift = (mean(from.first) - mean(from.second)) / eps;
  const at::Tensor unit = shift / norm(shift).sqrt();
  const at::Tensor is_same = u < ((norm(xi) - norm(xi + shift)) / 2).exp();
  const double turn = fault == PairFault::kProjected ? 1 : 2;
  const at::Tensor eta =
      at::where(is_same, xi + shift, xi - turn * (unit * xi).sum(-1, true) * unit);
  const at::Tensor test = fault == PairFault::kReusedUniform ? u : uniform();
  const auto moved = [&](const Particles& x, const at::Tensor& noise, const at::Tensor& v) {
    const Particles to = problem.evaluate(mean(x) + eps * noise);
    const at::Tensor ratio = (to.log_gamma - x.log_gamma).unsqueeze(-1) +
                             (norm(noise) - norm((x.e - mean(to)) / eps)) / 2;
    return where((v < ratio.exp()).squeeze(-1), to, x);
  };
  Pairs now{moved(from.first, xi, test),
            moved(from.second, eta, fault == PairFault::kTwoUniforms ? uniform() : test), from.met};
  now.met = (now.first.e - now.second.e).abs().amax(-1) < 1e-9;
  return now;
}

constexpr int64_t kTargets = 400, kPairs = 40;
constexpr double kEps = 0.9, kBaseShare = 0.4;

using Move = std::function<Pairs(const Problem&, const Pairs&, at::Generator&)>;

Move twin(PairFault fault) {
  return [fault](const Problem& problem, const Pairs& pairs, at::Generator& rng) {
    return by_the_book(problem, pairs, kEps, fault, rng);
  };
}

Pairs ours(const Problem& problem, const Pairs& pairs, at::Generator& rng) {
  const at::Tensor eps = at::full({kTargets, kPairs, 1}, kEps, at::kDouble);
  return moved_together(problem, pairs, eps, rng);
}

/// A skewed target of two dimensions, and pairs that start at two points.
struct Skewed {
  LogGamma target{kTargets, {1.5, 3.0}};
  Problem problem{borrow(target), AffineMap::identity(kTargets, 2, at::kDouble)};
  Pairs pairs{at(-0.5, 1.5), at(0.8, 0.4), at::zeros({kTargets, kPairs}, at::kBool)};

  Particles at(double x, double y) const {
    return problem.evaluate(at::tensor({x, y}, at::kDouble).repeat({kTargets, kPairs, 1}));
  }
};

/// The largest |z| between moments of a chain of the pairs and of one that `mala` moves alone.
double worst_against_mala(const Move& move) {
  const Skewed s;
  const auto mala = TransitionRegistry::instance().make("kernel", "mala", {1});
  const auto path = PathRegistry::instance().make("path", "geometric");
  const at::Tensor beta = at::ones({kTargets}, at::kDouble);
  at::Generator rng = make_generator(7);
  Pairs pairs = s.pairs;
  std::vector<Particles> alone = {pairs.first, pairs.second};
  for (int i = 0; i < 3; ++i) {
    pairs = move(s.problem, pairs, rng);
    for (Particles& one : alone)
      one = mala->step(s.problem, *path, one, beta, kEps * beta, rng).particles;
  }
  const auto worst = [](const Particles& a, const Particles& b) {
    using testing::moments;
    const at::Tensor apart = moments(a, a.log_gamma) - moments(b, b.log_gamma);
    return testing::z_scores(apart, at::zeros({})).abs().max().item<double>();
  };
  return std::max(worst(pairs.first, alone[0]), worst(pairs.second, alone[1]));
}

TEST(CoupledMove, MovesEachChainAsAlone) {
  EXPECT_LT(worst_against_mala(ours), 5);
  EXPECT_LT(worst_against_mala(twin(PairFault::kNone)), 5);
  EXPECT_GT(worst_against_mala(twin(PairFault::kProjected)), 8);
  EXPECT_GT(worst_against_mala(twin(PairFault::kReusedUniform)), 8);
}

TEST(CoupledMove, KeepsTheTargetWhereItProposesDrawsOfTheBase) {
  const Skewed s;
  const at::Tensor eps = at::full({kTargets, kPairs, 1}, INFINITY, at::kDouble);
  at::Generator rng = make_generator(9);
  const auto exact = [&] { return s.problem.evaluate(*s.target.exact_sample(kPairs, rng)); };
  const Pairs before{exact(), exact(), s.pairs.met};
  Pairs after = before;
  for (int i = 0; i < 3; ++i) after = moved_together(s.problem, after, eps, rng);
  for (const auto& [old, now] :
       {std::pair{before.first, after.first}, {before.second, after.second}}) {
    const at::Tensor apart =
        testing::moments(now, now.log_gamma) - testing::moments(old, old.log_gamma);
    EXPECT_LT(testing::z_scores(apart, at::zeros({})).abs().max().item<double>(), 5);
  }
  const double met = after.met.to(at::kDouble).mean().item<double>();
  EXPECT_GT(met, 0.1);
  EXPECT_LT(met, 0.9);
}

/// The share of pairs that are together after 40 moves.
double together(const Move& move) {
  const Skewed s;
  at::Generator rng = make_generator(8);
  Pairs pairs = s.pairs;
  for (int i = 0; i < 40; ++i) pairs = move(s.problem, pairs, rng);
  const at::Tensor apart = (pairs.first.e - pairs.second.e).abs().amax(-1);
  return (apart < 1e-9).to(at::kDouble).mean().item<double>();
}

TEST(CoupledMove, BringsChainsTogetherForGood) {
  EXPECT_GT(together(ours), 0.999);
  EXPECT_LT(together(twin(PairFault::kTwoUniforms)), 0.9);
}

/// N(0, 1) in coordinates of a base that is too narrow, and chains from 5.
struct Line {
  DiagonalGaussian target{400, {0.0}, {1.0}, 0.0};
  double width = 0.7;
  Problem problem{borrow(target), AffineMap::identity(400, 1, at::kDouble).widened(width)};
  at::Tensor step_size = at::full({400}, 0.4 / width, at::kDouble);
  at::Tensor far = at::full({400, 20, 1}, 5.0 / width, at::kDouble);

  CoupledDraws draws(const at::Tensor& second, int64_t lag, uint64_t seed) const {
    at::Generator rng = make_generator(seed);
    return coupled_draws(problem, step_size, kBaseShare, far, second, lag, rng);
  }
};

/// The distance of draws from N(0, 1) on half-lines: at most the total variation distance.
double distance_of(const at::Tensor& z) {
  double largest = 0;
  for (double c = -1; c < 3; c += 0.25)
    largest = std::max(largest, (z > c).to(at::kDouble).mean().item<double>() -
                                    0.5 * std::erfc(c / std::sqrt(2.0)));
  return largest;
}

TEST(CoupledDraws, BoundTheDistanceFromANormal) {
  const Line line;
  for (const int64_t lag : {10, 25, 40}) {
    const CoupledDraws draws = line.draws(line.far, lag, 3);
    const double chance = 5 * testing::std_error(draws.distance.mean(1));
    const double bound = draws.distance.mean().item<double>(), known = distance_of(draws.z);
    EXPECT_GT(known, 0.05) << lag;
    EXPECT_GT(bound + chance, known) << lag;
    EXPECT_LT(bound - chance, 5 * known) << lag;
    // Broken: the second chain does not lag. It starts where the first one is after its lag.
    const CoupledDraws beside = line.draws(line.draws(line.far, lag, 4).z / line.width, lag, 3);
    if (lag == 10) EXPECT_LT(beside.distance.mean().item<double>() + chance, known);
  }
}

TEST(CoupledDraws, StopWhereChainsStayApart) {
  const Line line;
  at::Generator rng = make_generator(5);
  const CoupledDraws stuck = coupled_draws(line.problem, 1e-4 * line.step_size, kBaseShare,
                                           2 * line.far, -2 * line.far, 4, rng);
  EXPECT_TRUE(stuck.moves.isinf().all().item<bool>());
  EXPECT_EQ(stuck.cost, line.problem.cost_of(20 * (4 + 2 + 2 * 256)));
}

}  // namespace
}  // namespace crais
