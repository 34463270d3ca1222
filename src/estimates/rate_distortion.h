/// @file
/// Rate and distortion along the temperatures of one anneal from the prior.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace crais {

/// The distortion of z is what the anneal adds to the prior, d(z) = log p(z) - log gamma(z): minus
/// the log-likelihood. At beta the chains are at q(z) proportional to p(z) exp(-beta d(z)), and
///   distortion D = E_q[d],   rate R = KL(q || p) = -beta D - log Z,   Z = E_p[exp(-beta d)],
/// the point of the curve of rate and distortion whose slope is -beta.  [Huang et al. 2020]
///
/// Of P problems at T+1 temperatures, [T+1,P] float64 each, nats. Standard errors are the
/// jackknife's over chains: of the rate, with the dependence of D and log Z in it.
struct RateDistortion {
  at::Tensor beta;                                  // [T+1], from 0 to 1
  at::Tensor rate, rate_error, rate_bias;           // log Z is found too low on average, R too high
  at::Tensor distortion, distortion_error;          // self-normalised means under the weights
  at::Tensor log_normalizer, log_normalizer_error;  // of log Z
  at::Tensor ess;                                   // fractions
  /// What reverse chains find of log Z beyond that; undefined without them. At the end it is an
  /// upper bound less a lower one, on average; before it, an estimate: exact draws are of the end.
  at::Tensor gap, gap_error;
};

/// The same problems of all parts, in their order.
RateDistortion joined(const std::vector<RateDistortion>& parts);

/// A number of each problem, summed over problems: [T+1] float64 each.
struct CurveSums {
  at::Tensor mean;
  at::Tensor squares;  // sum of squared deviations from the mean
  at::Tensor errors;   // sum of squared standard errors
};

/// What a curve keeps of its problems: in files, a few numbers a temperature.
struct RateDistortionSums {
  int64_t num_problems = 0;
  at::Tensor beta;       // [T+1]
  at::Tensor least_ess;  // [T+1], of any problem
  CurveSums rate, distortion, log_normalizer;
  CurveSums rate_bias, ess;  // without errors of their own: 0
  CurveSums gap;             // undefined without reverse chains

  bool has_gap() const { return gap.mean.defined(); }
  /// Those that are there, with their names in files.
  std::vector<std::pair<std::string, CurveSums RateDistortionSums::*>> columns() const;
};

RateDistortionSums sums_of(const RateDistortion& curve);

/// Of the problems of all parts. Throws Error kData unless they are of the same temperatures.
RateDistortionSums merged(const std::vector<RateDistortionSums>& parts);

}  // namespace crais
