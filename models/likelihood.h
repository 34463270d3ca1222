/// @file
/// p(x | z) as a function of what a decoder makes of z.
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <string>

namespace crais {

/// Independent pixels: Bernoulli, or continuous Bernoulli of grey values in [0, 1] with density
/// proportional to exp(logit x) [Loaiza-Ganem & Cunningham 2019], given as logits; or Gaussian with
/// one fixed noise, given as means. `output` [..., pixels] holds these.
struct Likelihood {
  enum class Family { kBernoulli, kGaussian, kContinuousBernoulli };
  Family family = Family::kBernoulli;
  double noise_sd = 1.0;  // Gaussian only

  bool is_bernoulli() const { return family == Family::kBernoulli; }
  bool is_of_logits() const { return family != Family::kGaussian; }

  /// log p(x | output) summed over pixels, in nats: [..., pixels] x [..., pixels] -> [...].
  /// Bernoulli: x may be any number in [0, 1].
  at::Tensor log_prob(const at::Tensor& x, const at::Tensor& output) const;
  /// d log p(x | output) / d output, in the memory of `output` where that serves.
  at::Tensor grad(const at::Tensor& x, at::Tensor output) const;
  /// The Fisher information of each entry of the output, and its root.
  at::Tensor fisher(const at::Tensor& output) const;
  at::Tensor root_fisher(const at::Tensor& output) const;
  /// The mean of x.
  at::Tensor mean(const at::Tensor& output) const;
  /// A draw of x by inversion, from `uniform` numbers in (0, 1) of the output's shape.
  at::Tensor draw(const at::Tensor& output, const at::Tensor& uniform) const;
};

/// "bernoulli", "continuous-bernoulli" or "gaussian:SD".
Likelihood parse_likelihood(const std::string& text);
std::string to_string(const Likelihood& likelihood);

/// What the outputs of a decoder from elsewhere mean.
struct DecoderLikelihood {
  Likelihood likelihood;
  /// Bernoulli: true for probabilities, as after a sigmoid; false for logits, even where all lie in
  /// [0, 1]; nothing for logits, of which that is not believed.
  std::optional<bool> probs;
};

/// As parse_likelihood, or "bernoulli:probs", "bernoulli:logits".
DecoderLikelihood parse_decoder_likelihood(const std::string& text);

/// The logits of probabilities; finite where a sigmoid was rounded to 0 or 1.
at::Tensor logits_of(const at::Tensor& probs);

}  // namespace crais
