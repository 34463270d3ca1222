// A decoder that is linear with normal noise: log p(x), posteriors, rate and distortion in closed
// form.
#pragma once

#include <ATen/ATen.h>

#include <cmath>

#include "core/rng.h"
#include "models/vae.h"

namespace crais::testing {

/// z ~ N(0, I), x = W z + b + s * noise. d(z) = -log p(x | z) = |x - W z - b|^2 / (2 s^2) + c, so
/// q(z) proportional to p(z) exp(-beta d(z)) is normal, of covariance C = (I + beta W'W / s^2)^-1.
struct LinearCurve {
  at::Tensor weight, bias;  // [n,D], [n]
  double noise = 1.0;

  static LinearCurve drawn(int64_t pixels, int64_t latent, double noise, at::Generator& rng) {
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

  /// q, of images [N,n].
  Posterior posterior(double beta, const at::Tensor& images) const {
    const double precision = beta / (noise * noise);
    const at::Tensor covariance = at::linalg_inv(at::eye(weight.size(1), at::kDouble) +
                                                 precision * at::mm(weight.t(), weight));
    return {at::mm(precision * at::mm(images - bias, weight), covariance), covariance};
  }

  struct Point {
    at::Tensor rate, distortion, log_normalizer;  // [N] nats
  };

  /// The point for images [N,n].
  Point at(double beta, const at::Tensor& images) const {
    const double precision = 1 / (noise * noise);
    const auto n = static_cast<double>(weight.size(0));
    const at::Tensor gram = at::mm(weight.t(), weight) * precision;
    const at::Tensor inverse = at::eye(weight.size(1), at::kDouble) + beta * gram;
    const auto [mean, covariance] = posterior(beta, images);
    const at::Tensor r = images - bias;
    const at::Tensor pulled = at::mm(r, weight) * precision;  // W'r / s^2, in rows
    const double constant = 0.5 * n * std::log(2 * M_PI * noise * noise);
    const at::Tensor left = r - at::mm(mean, weight.t());
    const at::Tensor distortion = constant + 0.5 * precision * left.square().sum(1) +
                                  0.5 * at::trace(at::mm(gram, covariance));
    const at::Tensor log_normalizer =
        -beta * constant - 0.5 * at::logdet(inverse) -
        0.5 * beta * (precision * r.square().sum(1) - (pulled * mean).sum(1));
    return {-beta * distortion - log_normalizer, distortion, log_normalizer};
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

}  // namespace crais::testing
