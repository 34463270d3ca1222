/// @file
/// p(x | z) as a function of the decoder's output at z.
#pragma once

#include <ATen/ATen.h>

#include <string>

namespace crais {

/// Independent pixels: Bernoulli with logits; continuous Bernoulli with logits, for grey values in
/// [0, 1], with a density proportional to exp(logit x) [Loaiza-Ganem & Cunningham 2019]; or
/// Gaussian with means and one fixed noise. `output` [..., pixels] holds these logits or means.
struct Likelihood {
  enum class Family { kBernoulli, kGaussian, kContinuousBernoulli };
  Family family = Family::kBernoulli;
  double noise_sd = 1.0;  // for Gaussian

  bool is_bernoulli() const { return family == Family::kBernoulli; }
  bool is_of_logits() const { return family != Family::kGaussian; }

  /// log p(x | output) summed over pixels, nats: [..., pixels] x [..., pixels] -> [...]. For
  /// Bernoulli, x may be any number in [0, 1].
  at::Tensor log_prob(const at::Tensor& x, const at::Tensor& output) const;
  /// d log p(x | output) / d output. May reuse the memory of `output`.
  at::Tensor grad(const at::Tensor& x, at::Tensor output) const;
  /// The Fisher information of each entry of the output, and its root.
  at::Tensor fisher(const at::Tensor& output) const;
  at::Tensor root_fisher(const at::Tensor& output) const;
  /// The mean of x.
  at::Tensor mean(const at::Tensor& output) const;
  /// Draws x by inversion, from `uniform` numbers in (0, 1) of the output's shape.
  at::Tensor draw(const at::Tensor& output, const at::Tensor& uniform) const;
};

/// Parses "bernoulli", "continuous-bernoulli" or "gaussian:SD".
Likelihood parse_likelihood(const std::string& text);
std::string to_string(const Likelihood& likelihood);

}  // namespace crais
