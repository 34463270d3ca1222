// Named targets against their definitions, written out plainly.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "core/rng.h"
#include "core/target.h"
#include "support/expect_error.h"
#include "support/statistics.h"

namespace crais {
namespace {

using testing::max_abs_diff;
using testing::z_scores;

std::unique_ptr<Target> make(const std::string& spec) {
  return TargetRegistry::instance().make("target", spec, {1, at::kDouble, ""});
}

double log_density(const std::string& spec, const std::vector<double>& z) {
  const auto target = make(spec);
  return target->log_density(at::tensor(z, at::kDouble).view({1, 1, -1})).item<double>();
}

double true_log_z(const std::string& spec) {
  return make(spec)->true_log_normalizer()->item<double>();
}

const double kLog2Pi = std::log(2 * M_PI);

double square(double x) { return x * x; }
double wave(double x) { return std::sin(M_PI * x / 2); }

TEST(Potentials, AreTheirFormulas) {
  for (const auto& [x, y] : {std::pair{0.7, -1.3}, std::pair{-2.1, 0.4}, std::pair{1.6, 1.1}}) {
    const double radius = std::hypot(x, y);
    EXPECT_NEAR(
        log_density("u1", {x, y}),
        -0.5 * square((radius - 2) / 0.4) + std::log(std::exp(-0.5 * square((x - 2) / 0.6)) +
                                                     std::exp(-0.5 * square((x + 2) / 0.6))),
        1e-12);
    EXPECT_NEAR(log_density("u2", {x, y}), -0.5 * square((y - wave(x)) / 0.4), 1e-12);
    const double w2 = 3 * std::exp(-0.5 * square((x - 1) / 0.6));
    EXPECT_NEAR(log_density("u3", {x, y}),
                std::log(std::exp(-0.5 * square((y - wave(x)) / 0.35)) +
                         std::exp(-0.5 * square((y - wave(x) + w2) / 0.35))),
                1e-12);
    const double w3 = 3 / (1 + std::exp(-(x - 1) / 0.3));
    EXPECT_NEAR(log_density("u4", {x, y}),
                std::log(std::exp(-0.5 * square((y - wave(x)) / 0.4)) +
                         std::exp(-0.5 * square((y - wave(x) + w3) / 0.35))),
                1e-12);
  }
}

/// log of the integral over |z1| <= 4, by the trapezoid rule with half weights at its ends.
double log_integral_within_4(const std::string& spec) {
  constexpr int64_t kX = 801, kY = 1501;
  const at::Tensor x = at::linspace(-4, 4, kX, at::kDouble);
  const at::Tensor y = at::linspace(-9, 6, kY, at::kDouble);
  const at::Tensor z = at::stack(at::meshgrid({x, y}, "ij"), -1).view({1, kX * kY, 2});
  at::Tensor values = make(spec)->log_density(z).exp().view({kX, kY}).sum(1);
  values[0] *= 0.5;
  values[kX - 1] *= 0.5;
  return std::log(values.sum().item<double>() * (8.0 / (kX - 1)) * (15.0 / (kY - 1)));
}

TEST(Potentials, HaveTheirNormalisers) {
  EXPECT_NEAR(true_log_z("u1"), 1.8775, 5e-5);
  EXPECT_NEAR(log_integral_within_4("u2"), std::log(8 * 0.4 * std::sqrt(2 * M_PI)), 1e-6);
  EXPECT_NEAR(log_integral_within_4("u2"), 2.0821, 5e-5);
  EXPECT_NEAR(log_integral_within_4("u3"), 2.6417, 5e-5);
  EXPECT_NEAR(log_integral_within_4("u4"), 2.7107, 5e-5);
  EXPECT_FALSE(make("u3")->true_log_normalizer().has_value());
}

TEST(Potentials, EndAtTheirWalls) {
  // Two half normals of sd 0.1 where U2 has mass 0.4 sqrt(2 pi) a unit of z1.
  const double column = 0.4 * std::sqrt(2 * M_PI);
  EXPECT_NEAR(true_log_z("u2:4"), std::log(column * (8 + 0.1 * std::sqrt(2 * M_PI))), 1e-4);
  EXPECT_GT(true_log_z("u4:width=4"), log_integral_within_4("u4"));
  EXPECT_LT(true_log_z("u4:width=4"), log_integral_within_4("u4") + 0.05);
  EXPECT_EQ(log_density("u3:4", {3.9, 0.2}), log_density("u3", {3.9, 0.2}));
  EXPECT_NEAR(log_density("u3:4", {-4.3, 0.2}), log_density("u3", {-4.3, 0.2}) - 4.5, 1e-12);
}

TEST(Normal, IsNarrowAndAwayFromTheBase) {
  EXPECT_NEAR(true_log_z("u6"), -2.767, 5e-4);
  EXPECT_NEAR(true_log_z("normal"), 128 * (0.5 * kLog2Pi + std::log(0.1)), 1e-10);
  EXPECT_EQ(log_density("normal:3", {1, 1, 1}), 0);
  EXPECT_NEAR(log_density("normal:dim=3", {1.2, 1, 0.7}), -50 * (0.04 + 0.09), 1e-12);
  EXPECT_EQ(log_density("u6", {0.9, 1.3}), log_density("normal:2", {0.9, 1.3}));
}

TEST(Mixture, IsTheSumOverItsCorners) {
  const std::vector<double> z = {-4.1, 0.02, 5.5, -4.4, -6.0};
  double sum = 0;
  for (int corner = 0; corner < 8; ++corner) {
    double distance = square(z[3] + 5) + square(z[4] + 5);
    for (int d = 0; d < 3; ++d) distance += square(z[size_t(d)] - (corner >> d & 1 ? 5 : -5));
    sum += std::exp(-0.5 * distance);
  }
  EXPECT_NEAR(log_density("mixture:5", z), std::log(sum), 1e-12);
  EXPECT_NEAR(true_log_z("mixture"), 64 * kLog2Pi + std::log(8.0), 1e-10);
  EXPECT_NEAR(true_log_z("mixture:512"), 256 * kLog2Pi + std::log(8.0), 1e-10);
  EXPECT_NEAR(log_density("mixture:4", {500, -500, 500, -5}), -1.5 * square(495), 1e-6);
}

TEST(Tails, AreNormalised) {
  EXPECT_NEAR(log_density("laplace:2", {0.5, -1.25}), -1.75 - 2 * std::log(2), 1e-12);
  EXPECT_EQ(true_log_z("laplace"), 0);
  const double t = std::log(2 / (M_PI * std::sqrt(3)) / square(1 + 0.49 / 3));
  EXPECT_NEAR(log_density("student-t:1", {-0.7}), t, 1e-12);
  EXPECT_NEAR(log_density("student-t:1,nu=1", {2}), std::log(1 / (M_PI * 5)), 1e-12);  // Cauchy
  EXPECT_EQ(true_log_z("student-t:512"), 0);
}

TEST(PlaneMixtures, TakeWidthsAsVariancesOrAsStandardDeviations) {
  EXPECT_NEAR(true_log_z("u5"), std::log(8 * 2 * M_PI * 0.1), 1e-12);
  EXPECT_NEAR(true_log_z("u5:s=std"), std::log(8 * 2 * M_PI * 0.01), 1e-12);
  EXPECT_NEAR(log_density("u5", {0, 3.2}), -0.5 * 0.04 / 0.1, 1e-11);  // its neighbours: 1e-12
  EXPECT_NEAR(log_density("u5:s=std", {-3, 0.1}), -0.5, 1e-12);
  for (const std::string spec : {"u10", "u10:s=std"})
    EXPECT_NEAR(true_log_z(spec), std::log(1.7381 + 1.9599), 1e-12) << spec;
  for (const std::string spec : {"u11", "u11:s=std"})
    EXPECT_NEAR(true_log_z(spec), std::log(1.0541 + 1.7398 + 1.4888 + 1.3785), 1e-12) << spec;

  const auto normal = [](double x, double v) {
    return std::exp(-0.5 * x * x / v) / std::sqrt(2 * M_PI * v);
  };
  const double x = 0.4, y = -0.3;
  EXPECT_NEAR(log_density("u10", {x, y}),
              std::log(1.7381 * normal(x - 2.6033, 0.5189) * normal(y - 0.8211, 0.6033) +
                       1.9599 * normal(x + 0.1783, 0.6922) * normal(y + 1.1537, 0.9514)),
              1e-12);
  EXPECT_NEAR(
      log_density("u10:s=std", {x, y}),
      std::log(1.7381 * normal(x - 2.6033, square(0.5189)) * normal(y - 0.8211, square(0.6033)) +
               1.9599 * normal(x + 0.1783, square(0.6922)) * normal(y + 1.1537, square(0.9514))),
      1e-12);
}

TEST(SmcMixtures, HaveTheirNormalisers) {
  EXPECT_NEAR(true_log_z("smc-mixture:16"), 5.997, 5e-4);
  EXPECT_NEAR(true_log_z("smc-mixture:24"), 6.402, 5e-4);
  EXPECT_NEAR(true_log_z("smc-mixture:32"), 6.690, 5e-4);
  EXPECT_NEAR(true_log_z("smc-mixture:48"), 7.095, 5e-4);
}

/// Far out, the nearest component is all there is: its mean shows.
TEST(SmcMixtures, KeepTheirMeans) {
  const double x = 5 * 2.9208, y = 5 * -1.1247;  // the last of 32
  const double there = log_density("smc-mixture:32", {x, y});
  EXPECT_GT(there, 0);
  EXPECT_LT(there, std::log(1.1));
  EXPECT_GT(log_density("smc-mixture:48", {5 * -1.9663, 5 * 0.6692}), 0);
  EXPECT_GT(log_density("smc-mixture:24", {5 * 2.2413, 5 * 1.6521}), 0);
  EXPECT_GT(log_density("smc-mixture:16", {5 * -2.316, 5 * -0.9893}), 0);
}

TEST(Components, ShareTheDensityAndTheMass) {
  int64_t with_draws = 0;
  for (const char* spec :
       {"u1", "u5", "u5:s=std", "u10", "u11:s=std", "mixture:4", "smc-mixture:16"}) {
    const auto target = make(spec);
    at::Generator rng = make_generator(11);
    const at::Tensor points = at::empty({1, 50, target->dim()}, at::kDouble).normal_(0, 3, rng);
    const Components some = *target->slice(0, 1)->components(points);
    EXPECT_LT(max_abs_diff(some.shares.sum(-1), at::ones({1, 50}, at::kDouble)), 1e-12) << spec;
    EXPECT_NEAR(some.masses.sum().item<double>(), 1, 1e-12) << spec;
    EXPECT_EQ(some.shares.size(-1), some.masses.size(0)) << spec;
    const auto draws = target->exact_sample(20000, rng);
    if (!draws) continue;
    ++with_draws;
    const at::Tensor shares = target->components(*draws)->shares[0];
    EXPECT_LT(z_scores(shares, some.masses).abs().max().item<double>(), 5) << spec;
  }
  EXPECT_EQ(with_draws, 6);
}

TEST(Components, AreWhereTheirModesAre) {
  const auto at_point = [](const std::string& spec, const std::vector<double>& z) {
    const auto target = make(spec);
    return target->components(at::tensor(z, at::kDouble).view({1, 1, -1}))->shares.view({-1});
  };
  EXPECT_NEAR(at_point("u1", {2, 0})[1].item<double>(), 1, 1e-4);
  EXPECT_NEAR(at_point("u1", {-2, 0})[0].item<double>(), 1, 1e-4);
  EXPECT_NEAR(at_point("u1", {0, 2})[0].item<double>(), 0.5, 1e-12);
  EXPECT_NEAR(at_point("u10", {2.6, 0.8})[0].item<double>(), 1, 1e-2);
  EXPECT_NEAR(at_point("mixture:4", {5, -5, 5, -5})[5].item<double>(), 1, 1e-12);
  EXPECT_FALSE(make("u2:4")->components(at::zeros({1, 1, 2}, at::kDouble)).has_value());
}

/// The values at z_i = 0.3 sin i of a second implementation, in Python.
TEST(Benchmarks, AreTheirDefinitions) {
  const std::vector<std::pair<std::string, double>> cases = {
      {"seeds", -151.5132554093},
      {"brownian", -64.4794019607},
      {"eight-schools", -46.3194492713},
      {"eight-schools:centred=0", -43.9258535241},
      {"horseshoe", -52.0688388801},
      {"horseshoe:centred=0", -50.3444643497},
      {"narrow:32", -433684.7101611864},
      {"forty-normals", -13.8500213406},
      {"many-well:32", 3.7805354965},
      {"double-well", 0.5045192131},
      {"funnel:10", -11.5776220837},
      {"rosenbrock", -2.4647809709},
      {"beta-binomial:2,b=5", -71.9943026212},
      {"two-normals:5", -94.6823591872},
      {"two-widths:10", -11.7170348035},
      {"cox-process:30", -409.6513512650},
      {"cox-process:10,twice=1", 352.5791416972},
      {"cox-process:5", 423.0040359477},
      {"radon", -1869.1927354336},
      {"radon:centred=0", -1830.2502617753},
      {"stochastic-volatility", -280992.6113412846},
      {"item-response", -21759.9516323258},
      {"logistic-regression:german,intercept=1,flat=1", -728.6699889048},
      {"logistic-regression:german,intercept=1,variance=100", -809.2137274538},
      {"eggbox", 238.29834079},
      {"rosenbrock-box", -478.60660592},
      {"shells:2", -21.0469704397}};
  for (const auto& [spec, expected] : cases) {
    const auto target = make(spec);
    const at::Tensor z = 0.3 * at::arange(1, target->dim() + 1, at::kDouble).sin();
    EXPECT_NEAR(target->log_density(z.view({1, 1, -1})).item<double>() / expected, 1, 1e-8) << spec;
  }
}

/// Given tau, the evidence is a product over the measurements 4, 3, ... of the horseshoe, each an
/// integral over log lambda: N(y; 0, 1 + (tau lambda)^2) under a half Cauchy.
TEST(Benchmarks, TheHorseshoeHasItsEvidence) {
  const at::Tensor t = at::linspace(-40, 40, 1001, at::kDouble);
  const at::Tensor prior = std::log(2 / M_PI) + t - at::softplus(2 * t) + std::log(0.08);
  const at::Tensor variance = 1 + (2 * (t.unsqueeze(1) + t)).exp();  // [tau,lambda]
  at::Tensor total = prior.clone();
  for (const double y : {4.0, 3.0, -2.5, 0.3, -0.4, 0.8, -0.1, 0.5, -1.0, 0.2})
    total +=
        at::logsumexp(prior - 0.5 * (y * y / variance + variance.log() + std::log(2 * M_PI)), 1);
  EXPECT_NEAR(at::logsumexp(total, 0).item<double>(),
              make("horseshoe")->true_log_normalizer()->item<double>(), 1e-6);
}

/// The plates with one kind of seed and one extract have a mean eta of their own, and given tau the
/// likelihoods of these four means are products of integrals over one effect each.
TEST(Benchmarks, SeedsHaveTheirEvidence) {
  const std::vector<double> germinated = {10, 23, 23, 26, 17, 5, 53, 55, 32, 46, 10,
                                          8,  10, 8,  23, 0,  3, 22, 15, 32, 3};
  const std::vector<double> sown = {39, 62, 81, 51, 39, 6,  74, 72, 51, 79, 13,
                                    16, 30, 28, 45, 4,  12, 41, 30, 51, 7};
  const auto n = at::tensor(sown, at::kDouble), r = at::tensor(germinated, at::kDouble);
  const at::Tensor ways = at::lgamma(n + 1) - at::lgamma(r + 1) - at::lgamma(n - r + 1);
  const std::vector<at::Tensor> plates = at::arange(21).split_with_sizes({5, 6, 5, 5});
  // N(0, 10^2) weights of intercept, kind, extract and interaction.
  const at::Tensor design =
      at::tensor({1, 0, 0, 0, 1, 0, 1, 0, 1, 1, 0, 0, 1, 1, 1, 1}, at::kDouble).view({4, 4});
  const at::Tensor weights_by_eta = at::linalg_inv(design) / 10;
  const double step_t = 0.25, step_eta = 0.15, step_e = 0.15;
  const at::Tensor e = at::arange(-9, 9 + 1e-9, step_e, at::kDouble),
                   grid = at::arange(-2.4, 2.4 + 1e-9, step_eta, at::kDouble);
  const std::vector<double> middle = {-0.55, 0.5, -0.6, 0.1};
  std::vector<at::Tensor> etas;
  etas.reserve(middle.size());
  for (const double centre : middle) etas.push_back(centre + grid);
  const at::Tensor all = at::stack(at::meshgrid(etas, "ij"), -1);
  const at::Tensor log_prior = -0.5 * at::matmul(all, weights_by_eta.t()).square().sum(-1) +
                               std::get<1>(at::linalg_slogdet(weights_by_eta)) - 2 * kLog2Pi;
  std::vector<at::Tensor> by_tau;
  for (int64_t i = 0; i < 44; ++i) {
    const double t = -2 + step_t * static_cast<double>(i);
    at::Tensor total =
        log_prior + 0.01 * std::log(0.01) - std::lgamma(0.01) + 0.01 * t - 0.01 * std::exp(t);
    for (size_t c = 0; c < etas.size(); ++c) {
      const auto of = [&](const at::Tensor& x) {
        return x.index_select(0, plates[c]).unsqueeze(1);
      };
      const at::Tensor eta = etas[c].view({-1, 1, 1}) + std::exp(-0.5 * t) * e;
      const at::Tensor each =
          of(r) * at::log_sigmoid(eta) + of(n - r) * at::log_sigmoid(-eta) - 0.5 * e.square();
      const at::Tensor log_l = each.logsumexp(2) + std::log(step_e) - 0.5 * kLog2Pi;
      std::vector<int64_t> along(4, 1);
      along[c] = -1;
      total = total + (log_l + of(ways).t()).sum(1).view(along);
    }
    by_tau.push_back(total.flatten().logsumexp(0));
  }
  EXPECT_NEAR(
      at::stack(by_tau).logsumexp(0).item<double>() + std::log(step_t) + 4 * std::log(step_eta),
      true_log_z("seeds"), 1e-5);
}

/// Given phi, mu and sigma, the evidence is a filter's: the log-variances x of one day after
/// another are integrated on a grid.
TEST(Benchmarks, StochasticVolatilityHasItsEvidence) {
  constexpr int64_t kDays = 100;
  // With phi = mu = log sigma = 0, x is e: a day whose e is 1 shows its squared change of price.
  at::Tensor z = at::zeros({1 + kDays, 3 + kDays}, at::kDouble);
  z.slice(0, 1).slice(1, 3).fill_diagonal_(1);
  const at::Tensor log_g = make("stochastic-volatility")->log_density(z.unsqueeze(0)).squeeze(0);
  const at::Tensor squares = 2 * (log_g.slice(0, 1) - log_g[0] + 1) / (1 - std::exp(-1));
  const double step_logit = 0.6, step_sigma = 0.3, step_w = 0.5;
  const at::Tensor w = at::arange(-2.8, 2.8 + 1e-9, step_w, at::kDouble);
  std::vector<at::Tensor> parts;
  for (int64_t i = 0; i < 20; ++i) {
    for (int64_t j = 0; j < 9; ++j) {
      const double logit = step_logit * static_cast<double>(i),
                   log_sigma = -2 + step_sigma * static_cast<double>(j);
      const double share = 1 / (1 + std::exp(-logit)), phi = 2 * share - 1,
                   sigma = std::exp(log_sigma), sd = sigma / std::sqrt(1 - phi * phi);
      const double spread = 0.1 + std::min(sd, 0.1 * sigma / (1 - phi));
      const at::Tensor mu = (6.5 + spread * w.sinh()).unsqueeze(1);
      const at::Tensor x = at::arange(0, 14, sigma, at::kDouble);
      const auto normal = [&](const at::Tensor& from_mean, double scale) {
        return (-0.5 * (from_mean / scale).square()).exp() / (scale * std::sqrt(2 * M_PI)) * sigma;
      };
      // Of x tomorrow [mu,x,1] given x today [mu,1,x].
      const at::Tensor next = normal(x.unsqueeze(1) - phi * x - (1 - phi) * mu.unsqueeze(2), sigma);
      at::Tensor mass = normal(x - mu, sd), log_l = at::zeros_like(mu);
      for (int64_t day = 0; day < kDays; ++day) {
        if (day > 0) mass = at::bmm(next, mass.unsqueeze(2)).squeeze(2);
        mass = mass * (-0.5 * (kLog2Pi + x + squares[day] * (-x).exp())).exp();
        const at::Tensor sum = mass.sum(1, /*keepdim=*/true);
        log_l += sum.log();
        mass = mass / sum;
      }
      const double log_beta = std::lgamma(20) + std::lgamma(1.5) - std::lgamma(21.5);
      const double log_prior = 20 * std::log(share) + 1.5 * std::log(1 - share) - log_beta +
                               std::log(1 / M_PI) - std::log1p(square(sigma / 2)) + log_sigma;
      parts.push_back(log_l.squeeze(1) + log_prior - std::log(5 * M_PI) -
                      (mu / 5).square().log1p().squeeze(1) + (spread * w.cosh()).log());
    }
  }
  EXPECT_NEAR(
      at::cat(parts).logsumexp(0).item<double>() + std::log(step_logit * step_sigma * step_w),
      true_log_z("stochastic-volatility"), 1e-3);
}

/// log of the mean of exp(log_density - log N(0, I)) over [0, 1]^2, whose points theta are `cells`
/// midpoints a side: the evidence under a uniform prior.
double log_evidence(const std::string& spec, int64_t cells) {
  const at::Tensor u = (at::arange(cells, at::kDouble) + 0.5) / double(cells);
  const at::Tensor e = at::special_ndtri(u);
  const at::Tensor z = at::stack(at::meshgrid({e, e}, "ij"), -1).view({1, cells * cells, 2});
  const at::Tensor log_prior = -0.5 * z.square().sum(-1) - kLog2Pi;
  const at::Tensor log_l = make(spec)->log_density(z) - log_prior;
  return log_l.logsumexp(1).item<double>() - 2 * std::log(double(cells));
}

TEST(Benchmarks, HaveTheirNormalisers) {
  EXPECT_NEAR(log_evidence("eggbox", 1500), true_log_z("eggbox"), 1e-4);
  EXPECT_NEAR(log_evidence("shells", 1500), true_log_z("shells"), 1e-4);
  EXPECT_NEAR(true_log_z("many-well:32"), 164.69567531, 1e-6);
  EXPECT_NEAR(true_log_z("rosenbrock"), std::log(2 * M_PI / 10), 1e-12);
  EXPECT_NEAR(true_log_z("two-widths:10"), 0, 1e-12);
  EXPECT_FALSE(make("shells:7")->true_log_normalizer().has_value());
  // Five independent pairs: x uniform on [-10, 10], y beside its square.
  const at::Tensor x = at::linspace(-10, 10, 200001, at::kDouble);
  const at::Tensor root = std::sqrt(20.0) * (10 - x.square());
  const at::Tensor inside =
      at::special_ndtr(root) - at::special_ndtr(std::sqrt(20.0) * (-10 - x.square()));
  const double pair =
      (-(x - 1).square()).exp().mul(inside).mean().item<double>() * std::sqrt(M_PI / 10) / 20;
  EXPECT_NEAR(5 * std::log(pair), true_log_z("rosenbrock-box"), 2e-4);
}

/// Given its scales a and b, what is seen of the walk is normal: covariance a^2 min(s, t) + b^2 I.
TEST(Benchmarks, BrownianIsAnIntegralOverItsScales) {
  const std::vector<double> y = {0.21592641,  0.118771404, -0.07945447, 0.037677474, -0.27885845,
                                 -0.1484156,  -0.3250906,  -0.22957903, -0.44110894, -0.09830782,
                                 -0.8786016,  -0.83736074, -0.7384849,  -0.8939254,  -0.7774566,
                                 -0.70238715, -0.87771565, -0.51853573, -0.6948214,  -0.6202789};
  const at::Tensor step = at::arange(1, 31, at::kDouble);
  const at::Tensor when = at::cat({step.slice(0, 0, 10), step.slice(0, 20)});
  const at::Tensor common = at::minimum(when.unsqueeze(0), when.unsqueeze(1));
  const at::Tensor log_scale = at::linspace(-10, 5, 301, at::kDouble);  // of a, and of b
  const at::Tensor prior = -0.5 * (log_scale / 2).square() - std::log(2) - 0.5 * kLog2Pi;
  const at::Tensor variance = (2 * log_scale).exp().view({-1, 1, 1, 1});
  const at::Tensor covariance = variance * common + variance.transpose(0, 1) * at::eye(20);
  const at::Tensor root = at::linalg_cholesky(covariance);
  const at::Tensor white =
      at::linalg_solve_triangular(root, at::tensor(y, at::kDouble).view({20, 1}), false);
  const at::Tensor log_l =
      -0.5 * white.square().sum({-2, -1}) - root.diagonal(0, -2, -1).log().sum(-1) - 10 * kLog2Pi;
  const at::Tensor joint = log_l + prior + prior.unsqueeze(1);
  EXPECT_NEAR(joint.flatten().logsumexp(0).item<double>() + 2 * std::log(0.05),
              true_log_z("brownian"), 1e-5);
}

/// Given its standard deviations, radon's density is normal in the rest: log Z is a sum over a grid
/// of both, each with one Newton step on the other 88, whose Hessian is a difference of gradients.
TEST(Benchmarks, RadonIsAnIntegralOverItsStandardDeviations) {
  const auto target = make("radon:centred=0");
  constexpr int64_t kRest = 88;
  const at::Tensor unit =
      at::cat({at::zeros({1, kRest}, at::kDouble), at::eye(kRest, at::kDouble)});
  const at::Tensor log_sy = at::linspace(-0.42, -0.12, 21, at::kDouble);
  const at::Tensor log_sa = at::linspace(-8, 1, 61, at::kDouble);
  std::vector<double> terms;
  for (int64_t i = 0; i < log_sy.size(0); ++i)
    for (int64_t j = 0; j < log_sa.size(0); ++j) {
      const at::Tensor sds = at::stack({log_sy[i], log_sa[j]}).expand({kRest + 1, 2});
      const Evaluation found = target->evaluate(at::cat({sds, unit}, 1).unsqueeze(0));
      const at::Tensor grad = found.grad[0].slice(1, 2), start = grad[0];
      const at::Tensor root = at::linalg_cholesky(start - grad.slice(0, 1));
      const at::Tensor white = at::linalg_solve_triangular(root, start.unsqueeze(1), false);
      terms.push_back(found.log_density[0][0].item<double>() +
                      0.5 * white.square().sum().item<double>() + 0.5 * kRest * kLog2Pi -
                      root.diagonal().log().sum().item<double>());
    }
  const double cell = 0.3 / 20 * (9.0 / 60);
  EXPECT_NEAR(at::tensor(terms, at::kDouble).logsumexp(0).item<double>() + std::log(cell),
              true_log_z("radon"), 2e-3);
  EXPECT_EQ(true_log_z("radon"), true_log_z("radon:centred=0"));
}

TEST(Benchmarks, HalfOfANormalHasAWall) {
  EXPECT_EQ(log_density("half-normal", {-0.1}), -INFINITY);
  EXPECT_NEAR(log_density("half-normal", {0.7}), -0.245 - 0.5 * kLog2Pi, 1e-12);
  EXPECT_NEAR(true_log_z("half-normal"), std::log(0.5), 1e-12);
}

TEST(Benchmarks, ExactDrawsFollowTheFunnel) {
  const auto target = make("funnel:3");
  at::Generator rng = make_generator(3);
  const at::Tensor z = (*target->exact_sample(40000, rng))[0], v = z.select(1, 0);
  const at::Tensor scaled = z.slice(1, 1) * (-0.5 * v).exp().unsqueeze(1);
  const at::Tensor standard = at::cat({v.unsqueeze(1) / 3, scaled}, 1);
  EXPECT_LT(z_scores(standard, at::zeros({3}, at::kDouble)).abs().max().item<double>(), 5);
  EXPECT_LT(z_scores(standard.square(), at::ones({3}, at::kDouble)).abs().max().item<double>(), 5);
}

TEST(TargetSpecifications, SayWhatIsWrong) {
  const auto fails = [](const std::string& spec, const std::vector<std::string>& words) {
    expect_error(ErrorKind::kArgument, words, [&] { make(spec); });
  };
  fails("banana", {"unknown target 'banana'", "u1", "laplace[:DIM]"});
  fails("normal:0", {"dim", "[1, "});
  fails("mixture:2", {"dim", "[3, "});
  fails("laplace:2,sd=3", {"unknown parameter sd"});
  fails("normal:2,sd=0", {"sd", "[1e-06, "});
  fails("u5:s=sd", {"u5:s=sd", "variance or std"});
  fails("u1:3", {"takes none"});
  fails("smc-mixture:17", {"16, 24, 32 or 48"});
  fails("smc-mixture", {"needs components"});
  fails("u2:-1", {"width"});
  fails("student-t:3,nu=0", {"nu"});
  fails("many-well:3", {"many-well:3", "even"});
  fails("cox-process:1", {"n", "[2, "});
  fails("eight-schools:centred=2", {"centred", "[0, 1]"});
  fails("logistic-regression:german,flat=2", {"flat", "[0, 1]"});
}

}  // namespace
}  // namespace crais
