// Kernels leave gamma_beta invariant; their broken twins do not, and the same test sees it.
#include "support/invariance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/rng.h"
#include "support/reference_kernels.h"
#include "support/spoiled_forces.h"
#include "support/targets.h"

namespace crais {
namespace {

using testing::DiagonalGaussian;
using testing::Fault;
using testing::LangevinFault;
using testing::LogGamma;
using testing::ReferenceHmc;
using testing::ReferenceLangevin;
using testing::SpoiledForces;
using testing::Spoiling;
using testing::worst_z;

constexpr int64_t kProblems = 200, kParticles = 60;

/// A problem, a path, a temperature, and exact draws there.
struct Setting {
  std::string path;
  double beta;
  std::unique_ptr<Target> target;
  AffineMap base;
  std::function<at::Tensor(at::Generator&)> draw;
};

at::Tensor randn(int64_t dim, at::Generator& rng) {
  return at::randn({kProblems, kParticles, dim}, rng, at::kDouble);
}

AffineMap triangular() {
  const at::Tensor scale = at::tensor({1.1, 0.0, 0.4, 0.9}, at::kDouble).view({2, 2});
  return {at::tensor({0.2, -0.3}, at::kDouble).repeat({kProblems, 1}),
          scale.repeat({kProblems, 1, 1})};
}

/// Gaussian target, geometric path, base N(0, I): gamma_beta is Gaussian.
Setting gaussian_pair() {
  const std::vector<double> mean = {1.2, -0.7}, sd = {0.6, 1.3};
  constexpr double kBeta = 0.6;
  return {"geometric", kBeta, std::make_unique<DiagonalGaussian>(kProblems, mean, sd, 0.9),
          AffineMap::identity(kProblems, 2, at::kDouble), [=](at::Generator& rng) {
            const at::Tensor m = at::tensor(mean, at::kDouble),
                             s2 = at::tensor(sd, at::kDouble).square();
            const at::Tensor lambda = 1 - kBeta + kBeta / s2;
            return kBeta * m / s2 / lambda + randn(2, rng) / lambda.sqrt();
          }};
}

/// Order 1 is a mixture of base and target, whatever they are.
Setting mixture_with(std::unique_ptr<Target> target, double beta) {
  const double z = std::exp(target->true_log_normalizer()->select(0, 0).item<double>());
  const Target& drawn = *target;
  const AffineMap base = triangular();
  return {
      "power:1", beta, std::move(target), base, [=, &drawn](at::Generator& rng) {
        const at::Tensor of_target = base.to_e(*drawn.exact_sample(kParticles, rng));
        const double share = beta * z / (1 - beta + beta * z);
        const at::Tensor u = at::empty({kProblems, kParticles, 1}, at::kDouble).uniform_(0, 1, rng);
        return at::where(u < share, of_target, randn(2, rng));
      }};
}

/// At beta = 1 the skewed target itself.
Setting skewed() {
  auto target = std::make_unique<LogGamma>(kProblems, std::vector<double>{1.5, 3.0});
  const Target& drawn = *target;
  const AffineMap base = triangular();
  return {"geometric", 1.0, std::move(target), base, [=, &drawn](at::Generator& rng) {
            return base.to_e(*drawn.exact_sample(kParticles, rng));
          }};
}

/// A path of order 1/2 on a line, drawn by inversion on a grid of cells.
Setting half_order() {
  auto target = std::make_unique<LogGamma>(kProblems, std::vector<double>{2.0});
  const auto path = PathRegistry::instance().make("path", "power:0.5");
  const at::Tensor beta = at::full({1}, 0.5, at::kDouble),
                   z = at::linspace(-25, 9, 200001, at::kDouble);
  const at::Tensor log_density =
      path->at(beta, -0.5 * z.square() - 0.5 * std::log(2 * M_PI), 2.0 * z - z.exp()).log_density;
  const at::Tensor cdf = log_density.softmax(0).cumsum(0);
  return {"power:0.5", 0.5, std::move(target), AffineMap::identity(kProblems, 1, at::kDouble),
          [=](at::Generator& rng) {
            const at::Tensor u = at::rand({kProblems, kParticles, 1}, rng, at::kDouble);
            const at::Tensor cell = at::searchsorted(cdf, u).clamp_max(z.size(0) - 1);
            return z.index({cell}) + (z[1] - z[0]) * (at::rand(u.sizes(), rng, at::kDouble) - 0.5);
          }};
}

std::vector<Setting> settings() {
  std::vector<Setting> all;
  all.push_back(gaussian_pair());
  all.push_back(
      mixture_with(std::make_unique<DiagonalGaussian>(kProblems, std::vector<double>{1.5, -0.5},
                                                      std::vector<double>{0.6, 1.2}, 0.5),
                   0.4));
  all.push_back(
      mixture_with(std::make_unique<LogGamma>(kProblems, std::vector<double>{1.5, 3.0}), 0.3));
  all.push_back(skewed());
  all.push_back(half_order());
  return all;
}

double worst(const Transition& kernel, const Setting& setting, double step_size, bool momentum,
             uint64_t seed) {
  const Problem problem(borrow(*setting.target), setting.base);
  const auto path = PathRegistry::instance().make("path", setting.path);
  at::Generator rng = make_generator(seed);
  const at::Tensor e = setting.draw(rng);
  return worst_z(kernel, problem, *path, e, {setting.beta, step_size, 12}, rng, momentum);
}

TEST(Invariance, HoldsForEveryKernelAndSetting) {
  uint64_t seed = 1;
  for (const auto& setting : settings()) {
    for (const auto& [name, entry] : TransitionRegistry::instance().entries()) {
      for (const auto& [num_leapfrog, step_size] : {std::pair{1, 1.1}, std::pair{5, 0.6}}) {
        const auto kernel =
            TransitionRegistry::instance().make("kernel", entry.example, {num_leapfrog});
        EXPECT_LT(worst(*kernel, setting, step_size, name == "ghmc", ++seed), 5)
            << name << " L = " << num_leapfrog << " on " << setting.path << " at " << setting.beta;
      }
    }
  }
}

Setting spoiled(Setting setting, Spoiling spoiling) {
  const std::shared_ptr<const Target> exact = std::move(setting.target);
  setting.target = std::make_unique<SpoiledForces>(exact, spoiling);
  return setting;
}

// Leapfrog steps are reversible and keep volume whatever the force: only the density must be right.
TEST(Invariance, HoldsForAnyForce) {
  uint64_t seed = 100;
  for (const auto spoiling : {Spoiling::kConstant, Spoiling::kFlipped, Spoiling::kAnothers}) {
    for (auto& setting : settings()) {
      const Setting wrong = spoiled(std::move(setting), spoiling);
      for (const auto& [name, num_leapfrog] : {std::pair{"hmc", 3}, {"ghmc:0.8", 1}, {"mala", 1}}) {
        const auto kernel = TransitionRegistry::instance().make("kernel", name, {num_leapfrog});
        const bool persists = std::string(name) == "ghmc:0.8";
        EXPECT_LT(worst(*kernel, wrong, 0.5, persists, ++seed), 5)
            << name << " L = " << num_leapfrog << ", forces " << int(spoiling) << " on "
            << wrong.path << " at " << wrong.beta;
      }
    }
  }
}

// ... as long as it is a function of the position alone.
TEST(Invariance, FailsForForcesThatAreNoFunctionOfThePosition) {
  for (const int64_t num_leapfrog : {1, 3}) {
    EXPECT_GT(
        worst(ReferenceHmc(Fault::kForceOfMomentum, num_leapfrog), gaussian_pair(), 0.9, false, 61),
        5)
        << num_leapfrog;
    const auto kernel = TransitionRegistry::instance().make("kernel", "hmc", {num_leapfrog});
    // Calls are few, and each point is asked for once, so not every setting shows it.
    double most = 0.0;
    for (auto& setting : settings()) {
      const Setting changing = spoiled(std::move(setting), Spoiling::kChanging);
      most = std::max(most, worst(*kernel, changing, 0.9, false, 62));
    }
    EXPECT_GT(most, 5) << num_leapfrog;
  }
}

TEST(Invariance, FailsForBrokenTwins) {
  const Setting pair = gaussian_pair();
  for (const int64_t num_leapfrog : {1, 5}) {
    const double step_size = num_leapfrog == 1 ? 1.1 : 0.6;
    for (const auto fault : {Fault::kNoAccept, Fault::kWrongKinetic, Fault::kMissingHalfKick,
                             Fault::kFlippedLastKick, Fault::kWrongBeta, Fault::kKeptDensity})
      EXPECT_GT(worst(ReferenceHmc(fault, num_leapfrog), pair, step_size, false, 31), 5)
          << "fault " << int(fault) << " L = " << num_leapfrog;
  }
}

TEST(Invariance, FailsForBrokenPersistence) {
  const Setting pair = gaussian_pair();
  for (const auto fault : {Fault::kNoFlip, Fault::kWrongRefresh, Fault::kNoAccept})
    EXPECT_GT(worst(ReferenceHmc(fault, 1, 0.9), pair, 1.1, true, 33), 5) << "fault " << int(fault);
}

TEST(Invariance, FailsForBrokenLangevinTwins) {
  const Setting pair = gaussian_pair();
  for (const auto fault :
       {LangevinFault::kNoAccept, LangevinFault::kOneWay, LangevinFault::kWrongScale,
        LangevinFault::kStaleGradient, LangevinFault::kWrongBeta})
    EXPECT_GT(worst(ReferenceLangevin(fault, true), pair, 1.1, false, 34), 5)
        << "fault " << int(fault);
  for (const auto fault :
       {LangevinFault::kNoAccept, LangevinFault::kWrongBeta, LangevinFault::kAlwaysUp})
    EXPECT_GT(worst(ReferenceLangevin(fault, false), pair, 1.1, false, 35), 5)
        << "fault " << int(fault);
}

}  // namespace
}  // namespace crais
