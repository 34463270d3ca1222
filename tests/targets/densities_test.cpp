// Named targets against their definitions, written out plainly.
#include <gtest/gtest.h>

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

/// The values at z_i = 0.3 sin i of a second implementation, in Python.
TEST(Classics, AreTheirDefinitions) {
  const std::vector<std::pair<std::string, double>> cases = {{"many-well:32", 3.7805354965},
                                                             {"double-well", 0.5045192131},
                                                             {"funnel:10", -11.5776220837},
                                                             {"rosenbrock", -2.4647809709}};
  for (const auto& [spec, expected] : cases) {
    const auto target = make(spec);
    const at::Tensor z = 0.3 * at::arange(1, target->dim() + 1, at::kDouble).sin();
    EXPECT_NEAR(target->log_density(z.view({1, 1, -1})).item<double>() / expected, 1, 1e-8) << spec;
  }
  EXPECT_NEAR(true_log_z("many-well:32"), 164.69567531, 1e-6);
  EXPECT_NEAR(true_log_z("rosenbrock"), std::log(2 * M_PI / 10), 1e-12);
}

TEST(Classics, ExactDrawsFollowTheFunnel) {
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
}

}  // namespace
}  // namespace crais
