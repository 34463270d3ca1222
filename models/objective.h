// The training objective, a lower bound on log p(x), and the schedule of the learning rate.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <string>

#include "models/vae.h"

namespace crais {

/// The ELBO with its KL divergence in closed form, or the importance-weighted bound (IWAE) of K
/// samples.                    [Burda, Grosse & Salakhutdinov 2016]
struct Objective {
  enum class Kind { kElbo, kIwae };
  Kind kind = Kind::kElbo;
  int64_t samples = 1;
};

/// Parses "elbo" or "iwae:K". Throws Error kArgument for any other text.
Objective parse_objective(const std::string& text);
std::string to_string(const Objective& objective);

/// KL(q(z | x) || N(0, I)) in nats: [B].
at::Tensor kl_divergence(const Vae::Posterior& posterior);

/// Bounds of each image, nats, [B] each.
struct Bounds {
  at::Tensor maximised;  // the objective with a weighted KL term; the others are unweighted
  at::Tensor bound;      // the objective
  at::Tensor elbo;       // averaged over the samples, KL in closed form
  at::Tensor kl;
};

/// The bounds of binarised images `x` [B, pixels], with one posterior sample for each row of
/// `noise` [samples, B, latent] ~ N(0, I). Cost: samples * B decoder evaluations.
Bounds evaluate(const Objective& objective, const Vae& vae, const at::Tensor& x,
                const at::Tensor& noise, double kl_weight = 1.0);

/// The decay of the learning rate over the epochs.
struct Decay {
  std::optional<double> final_rate;  // of half a cosine, in the last epoch; none: no decay

  /// The rate in `epoch` = 0 .. num_epochs - 1.
  double rate(double initial, int64_t epoch, int64_t num_epochs) const;
};

/// Parses "none" or "cosine:FINAL". Throws Error kArgument for any other text.
Decay parse_decay(const std::string& text);
std::string to_string(const Decay& decay);

}  // namespace crais
