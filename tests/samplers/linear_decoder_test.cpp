// A decoder that is linear with Gaussian noise: log p(x) = log N(x; b, W W^T + s^2 I). Every
// schedule x path x base must evaluate to it.
#include <gtest/gtest.h>

#include <cmath>

#include "core/log_math.h"
#include "core/rng.h"
#include "estimates/estimate.h"
#include "samplers/importance.h"
#include "samplers/plan.h"
#include "support/statistics.h"
#include "support/temporary_folder.h"
#include "targets/vae_posterior.h"

namespace crais {
namespace {

using testing::max_abs_diff;
using testing::TemporaryFolder;

constexpr int64_t kImages = 300, kLatent = 3, kPixels = 5;
constexpr double kNoise = 0.6;

class LinearDecoder : public ::testing::Test {
 protected:
  LinearDecoder() {
    at::Generator rng = make_generator(1);
    vae_.architecture.image_rows = kPixels;
    vae_.architecture.image_cols = 1;
    vae_.architecture.latent = kLatent;
    vae_.architecture.likelihood = parse_likelihood("gaussian:0.6");
    weight_ = 0.7 * at::randn({kPixels, kLatent}, rng, at::kDouble);
    bias_ = at::randn({kPixels}, rng, at::kDouble);
    vae_.decoder.layers = {{weight_, bias_}};
    images_ = simulate(vae_, kImages, rng).images;

    const at::Tensor eye = at::eye(kPixels, at::kDouble);
    const at::Tensor covariance = at::mm(weight_, weight_.t()) + kNoise * kNoise * eye;
    const at::Tensor centred = images_ - bias_;
    const at::Tensor solved = at::mm(centred, at::linalg_inv(covariance));
    truth_ = -0.5 * (solved * centred).sum(-1) - 0.5 * at::logdet(covariance) -
             0.5 * kPixels * std::log(2 * M_PI);

    const at::Tensor precision =
        at::eye(kLatent, at::kDouble) + at::mm(weight_.t(), weight_) / (kNoise * kNoise);
    posterior_covariance_ = at::linalg_inv(precision);
    posterior_mean_ = at::mm(centred, at::mm(weight_, posterior_covariance_)) / (kNoise * kNoise);
  }

  AffineMap exact_posterior() const {
    return {posterior_mean_, at::linalg_cholesky(posterior_covariance_).repeat({kImages, 1, 1})};
  }

  /// What an encoder might have learned: shifted, no correlations, too wide.
  AffineMap approximate_posterior() const {
    const at::Tensor sd = posterior_covariance_.diagonal().sqrt();
    return {posterior_mean_ + 0.3 * sd, (1.25 * sd).repeat({kImages, 1})};
  }

  Vae vae_;
  at::Tensor weight_, bias_, images_, truth_, posterior_mean_, posterior_covariance_;
};

TEST_F(LinearDecoder, IsExactFromTheExactPosterior) {
  const VaePosterior target(vae_, images_);
  const Problem problem(borrow(target), exact_posterior());
  at::Generator rng = make_generator(2);
  EXPECT_LT(max_abs_diff(importance_log_weights(problem, 1, rng).log_w.squeeze(1), truth_), 1e-11);
  const auto path = PathRegistry::instance().make("path", "geometric");
  const auto rule = ScheduleRegistry::instance().make("schedule", "linear", {4});
  const auto kernel = TransitionRegistry::instance().make("kernel", "hmc", {1});
  const AnnealResult run = anneal(problem, *path, freeze(*rule, 0.5), *kernel, 1, rng);
  EXPECT_LT(max_abs_diff(run.log_w.squeeze(1), truth_), 1e-11);
}

TEST_F(LinearDecoder, EveryScheduleAndPathAndBaseFindsTheTruth) {
  const TemporaryFolder folder;
  const VaePosterior target(vae_, images_);
  const std::vector<std::pair<std::string, AffineMap>> bases = {
      {"prior", AffineMap::identity(kImages, kLatent, at::kDouble)},
      {"approximate posterior", approximate_posterior()},
      {"exact posterior", exact_posterior()}};
  const auto kernel = TransitionRegistry::instance().make("kernel", "hmc", {1});
  uint64_t seed = 10;
  for (const auto& [base_name, base] : bases) {
    for (const char* path_spec : {"geometric", "power:0.5", "power:1"}) {
      const auto path = PathRegistry::instance().make("path", path_spec);
      for (const auto& [name, entry] : ScheduleRegistry::instance().entries()) {
        SCOPED_TRACE(base_name + ", " + path_spec + ", " + name);
        const std::string spec =
            name == "file" ? "file:" + folder.file("f", "0\n0.01\n0.1\n0.2\n0.4\n0.7\n1\n")
                           : entry.example;
        const auto rule = ScheduleRegistry::instance().make("schedule", spec, {12});
        const Problem problem(borrow(target), base,
                              truth_ + 1.0);  // a rough centre, as power paths need
        PilotOptions options;
        options.num_particles = 8;
        at::Generator pilot_rng = make_generator(++seed), rng = make_generator(1000 + seed);
        const Plan plan = run_pilot(problem, *path, *rule, *kernel, options, pilot_rng).plan;
        const AnnealResult run = anneal(problem, *path, plan, *kernel, 16, rng);
        const at::Tensor estimate = log_normalizer(run.log_w).value;
        const at::Tensor ratio = (estimate - truth_).exp();
        if (base_name == "exact posterior") {
          EXPECT_LT(max_abs_diff(estimate, truth_), 1e-10);
          continue;
        }
        EXPECT_LT(std::abs(testing::z_score(ratio, 1)), 5);
        EXPECT_LT(testing::std_error(ratio), 0.1);
        EXPECT_LT((estimate - truth_).mean().item<double>(), 0.05);  // a lower bound on average
      }
    }
  }
}

}  // namespace
}  // namespace crais
