// A decoder that is linear with Gaussian noise: log p(x) = log N(x; b, W W^T + s^2 I). Every
// schedule x path x base must evaluate to it.
#include <gtest/gtest.h>

#include <cmath>

#include "core/log_math.h"
#include "core/rng.h"
#include "estimates/estimate.h"
#include "models/vae.h"
#include "samplers/importance.h"
#include "samplers/plan.h"
#include "support/statistics.h"
#include "support/temporary_folder.h"
#include "targets/decoder_posterior.h"

namespace crais {
namespace {

using testing::max_abs_diff;
using testing::TemporaryFolder;

constexpr int64_t kImages = 300, kLatent = 3, kPixels = 5;

/// z ~ N(0, I), x = W z + b + s * noise: log p(x) and posteriors in closed form.
struct Linear {
  at::Tensor weight, bias;  // [n,D], [n]
  double noise = 1.0;

  static Linear drawn(int64_t pixels, int64_t latent, double noise, at::Generator& rng) {
    const at::Tensor weight = 0.7 * at::randn({pixels, latent}, rng, at::kDouble);
    return {weight, at::randn({pixels}, rng, at::kDouble), noise};
  }

  Vae vae() const {
    Vae vae;
    vae.architecture.image_rows = weight.size(0);
    vae.architecture.image_cols = 1;
    vae.architecture.latent = weight.size(1);
    vae.architecture.likelihood.family = Likelihood::Family::kGaussian;
    vae.architecture.likelihood.noise_sd = noise;
    vae.decoder.layers = {{weight, bias}};
    return vae;
  }

  struct Posterior {
    at::Tensor mean, covariance;  // [N,D], [D,D]
  };

  /// The posteriors of images [N,n].
  Posterior posterior(const at::Tensor& images) const {
    const double precision = 1 / (noise * noise);
    const at::Tensor covariance = at::linalg_inv(at::eye(weight.size(1), at::kDouble) +
                                                 precision * at::mm(weight.t(), weight));
    return {at::mm(precision * at::mm(images - bias, weight), covariance), covariance};
  }

  /// log N(x; b, W W' + s^2 I).
  at::Tensor log_likelihood(const at::Tensor& images) const {
    const at::Tensor covariance =
        at::mm(weight, weight.t()) + noise * noise * at::eye(weight.size(0), at::kDouble);
    const at::Tensor r = images - bias;
    return -0.5 * (at::mm(r, at::linalg_inv(covariance)) * r).sum(1) -
           0.5 * at::logdet(covariance) -
           0.5 * static_cast<double>(weight.size(0)) * std::log(2 * M_PI);
  }
};

class LinearDecoder : public ::testing::Test {
 protected:
  LinearDecoder() {
    at::Generator rng = make_generator(1);
    const Linear linear = Linear::drawn(kPixels, kLatent, 0.6, rng);
    vae_ = linear.vae();
    images_ = simulate(vae_, kImages, rng).images;
    truth_ = linear.log_likelihood(images_);
    posterior_ = linear.posterior(images_);
  }

  AffineMap exact_posterior() const {
    return {posterior_.mean, at::linalg_cholesky(posterior_.covariance).repeat({kImages, 1, 1})};
  }

  /// What an encoder might have learned: shifted, no correlations, too wide.
  AffineMap approximate_posterior() const {
    const at::Tensor sd = posterior_.covariance.diagonal().sqrt();
    return {posterior_.mean + 0.3 * sd, (1.25 * sd).repeat({kImages, 1})};
  }

  Vae vae_;
  at::Tensor images_, truth_;
  Linear::Posterior posterior_;
};

TEST_F(LinearDecoder, IsExactFromTheExactPosterior) {
  const DecoderPosterior target(vae_, images_);
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
  const DecoderPosterior target(vae_, images_);
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
