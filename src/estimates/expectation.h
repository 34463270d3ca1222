/// @file
/// Means under the target, from weighted particles.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/registry.h"
#include "core/target.h"

namespace crais {

/// A function h: R^D -> R^J whose mean and variance under the target are estimated. Immutable.
///
///     class Product : public crais::Expectation {
///      public:
///       std::vector<std::string> outputs(const crais::Target&) const override {
///         return {"z1 z2"};
///       }
///       at::Tensor values(const crais::Target&, const at::Tensor& z) const override {
///         return (z.select(-1, 0) * z.select(-1, 1)).unsqueeze(-1);
///       }
///     };
class Expectation {
 public:
  virtual ~Expectation() = default;
  /// The names of the J outputs. Throws Error kArgument if the function does not know the target.
  virtual std::vector<std::string> outputs(const Target& target) const = 0;
  /// h(z) [P,K,J] at z [P,K,D]. Cost: at most one density a particle.
  virtual at::Tensor values(const Target& target, const at::Tensor& z) const = 0;
  /// E[h] under the target, [J] float64, if it is known.
  virtual std::optional<at::Tensor> truth(const Target& /*target*/) const { return {}; }
};

using ExpectationRegistry = Registry<Expectation>;

/// The final particles of P problems with their weights.
struct WeightedParticles {
  at::Tensor z;                // [P,K,D], in the target's own coordinates
  at::Tensor log_w;            // [P,K] float64, nats: log_mean_exp estimates log Z
  at::Tensor num_resamplings;  // [P] float64; 0: the particles are independent
};

/// Summary of a function over the particles of P problems, small enough to be stored. With W_k =
/// w_k / sum w and d_k = h_k - mean:
struct ExpectationSums {
  at::Tensor log_total;            // [P] log sum_k w_k, nats
  at::Tensor num_particles;        // [P] float64
  at::Tensor num_resamplings;      // [P]
  at::Tensor square;               // [P] sum_k W_k^2 = 1 / (effective number of particles)
  at::Tensor mean;                 // [P,J] sum_k W_k h_k
  at::Tensor variance;             // [P,J] sum_k W_k d_k^2
  std::vector<at::Tensor> powers;  // four of [P,J]: sum_k W_k^2 d_k^n, n = 1, ..., 4
};

/// @param values     h(z) [P,K,J] of the particles.
/// @param particles  their weights. Weights that are all zero count as equal weights of
///                   log_total -inf, which `pooled` leaves out.
ExpectationSums expectation_sums(const at::Tensor& values, const WeightedParticles& particles);

/// The source of a standard error.
enum class ErrorFrom {
  kParticles,   // the particles are independent: delta method of a ratio of sums over particles
  kReplicates,  // resampling has made particles dependent: the delta method over replicates
  kNothing      // one replicate that was resampled: no error is known, and it is NaN
};
std::string to_string(ErrorFrom from);

/// E[h] and Var[h] under the target with standard errors, [J] float64 each.
struct ExpectationEstimate {
  at::Tensor mean, std_error;
  at::Tensor variance, variance_std_error;
  ErrorFrom from = ErrorFrom::kNothing;
  int64_t replicates = 0;
  int64_t particles = 0;  // in all replicates
  double ess = 0.0;       // of all particles: a fraction
};

/// The estimate from replicates of one density, taken as one ensemble: E[h] = sum w h / sum w over
/// all particles of all replicates, whose weights share one scale. Numerator and denominator are
/// unbiased for frozen plans; their ratio has a bias of O(1 / effective particles). With v the
/// estimate of Var[h] (over all particles, without a correction for their number), the standard
/// errors are
///   se(E)^2   = N / (N - 1) sum_k W_k^2 (h_k - E)^2
///   se(Var)^2 = N / (N - 1) sum_k W_k^2 ((h_k - E)^2 - v)^2                   [Owen 2013, ch. 9.2]
/// over the N particles if none was resampled. Else the sums run over the N replicates, and the
/// sums of W_k (h_k - E) and of W_k ((h_k - E)^2 - v) within each replicate replace the terms of a
/// particle.
/// @param parts  rows of one or more problems each. Throws Error kInternal without a row.
ExpectationEstimate pooled(const std::vector<ExpectationSums>& parts);

}  // namespace crais
