/// @file
/// Problems that are cut into parts. The normalisers of the parts sum to that of the problem.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace crais {

/// Q parts of P problems. With q0(z) = sum_j pi_j N_j(z) and r_j(z) = pi_j N_j(z) / q0(z), part j
/// of a problem is gamma(z) r_j(z). The r_j sum to 1 everywhere, so Z = sum_j Z_j for any N_j. The
/// sum of unbiased estimates of the Z_j is an unbiased estimate of Z.
struct Partition {
  at::Tensor problem;    // [Q] int64, ascending: the problem of each part
  at::Tensor log_share;  // [Q] float64: log pi_j; the shares of a problem sum to 1
  int64_t num_problems = 0;

  /// A partition whose shares are proportional to exp(log_mass), [Q] float64.
  static Partition by_mass(at::Tensor problem, const at::Tensor& log_mass, int64_t num_problems);

  int64_t num_parts() const { return problem.size(0); }
  /// The number of parts of each problem, [P] int64.
  at::Tensor counts() const;
  /// The rows of the problems at `index` [N] int64, in the order of `index`.
  at::Tensor rows_of(const at::Tensor& index) const;
  /// The problems at `index` [N] int64, in the order of `index`.
  Partition select(const at::Tensor& index) const;

  /// Reductions over the parts of each problem, [Q,...] float64 -> [P,...]: log sum exp, sums,
  /// means.
  at::Tensor log_sum_exp(const at::Tensor& values) const;
  at::Tensor sum(const at::Tensor& values) const;
  at::Tensor mean(const at::Tensor& values) const;
};

}  // namespace crais
