/// @file
/// Rate and distortion at the temperatures of one anneal from the prior.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "estimates/method.h"

namespace crais {

/// The distortion of z is the term that the anneal adds to the prior, d(z) = log p(z) - log
/// gamma(z): minus the log-likelihood. At beta the chains have the density q(z) proportional to
/// p(z) exp(-beta d(z)), and
///   distortion D = E_q[d],   rate R = KL(q || p) = -beta D - log Z,   Z = E_p[exp(-beta d)],
/// which is the point of the rate-distortion curve with slope -beta.  [Huang et al. 2020]
///
/// For P problems at T+1 temperatures, each as a `Number`; nats.
template <class Number>
struct CurveOf {
  at::Tensor beta;        // [T+1], from 0 to 1
  Number rate;            // too high on average, because log Z is too low
  Number distortion;      // self-normalised means under the weights
  Number log_normalizer;  // of Z at each temperature
  Number rate_bias, ess;  // expected bias of the rate; ESS fractions. Without errors of their own
  /// The excess of log Z by reverse chains over log Z by forward chains; undefined without reverse
  /// chains. At beta = 1 it is an upper bound minus a lower bound, on average. Before, it is an
  /// estimate: the exact draws belong to beta = 1.
  Number gap;

  static const std::vector<std::pair<std::string, Number CurveOf::*>>& columns() {
    static const std::vector<std::pair<std::string, Number CurveOf::*>> kAll = {
        {"rate", &CurveOf::rate},
        {"distortion", &CurveOf::distortion},
        {"log_normalizer", &CurveOf::log_normalizer},
        {"rate_bias", &CurveOf::rate_bias},
        {"ess", &CurveOf::ess},
        {"gap", &CurveOf::gap}};
    return kAll;
  }
};

/// [T+1,P] float64 each. Standard errors are the jackknife's over chains. The error of the rate
/// allows for the dependence of D and log Z.
struct CurveValues {
  at::Tensor value, error;
};
using RateDistortion = CurveOf<CurveValues>;

/// The problems of all parts, in their order.
RateDistortion joined(const std::vector<RateDistortion>& parts);

/// Sums over problems of a number: [T+1] float64 each.
struct CurveSums {
  at::Tensor mean;
  at::Tensor squares;  // sum of squared deviations from the mean
  at::Tensor errors;   // sum of squared standard errors; 0 if there are none
};

/// The stored summary of a curve over its problems: a few numbers for each temperature.
struct RateDistortionSums : CurveOf<CurveSums> {
  int64_t num_problems = 0;
  at::Tensor least_ess;  // [T+1], the least of all problems

  bool has_gap() const { return gap.mean.defined(); }
};

RateDistortionSums sums_of(const RateDistortion& curve);

/// The sums as named columns, [T+1] each, and back. Throws Error kData, beginning with `source`, if
/// the columns are not a curve.
std::map<std::string, at::Tensor> columns_of(const RateDistortionSums& sums);
RateDistortionSums sums_from(const std::map<std::string, at::Tensor>& columns, int64_t num_problems,
                             const std::string& source);

/// The sums over the problems of all parts. Throws Error kData if the parts have different
/// temperatures.
RateDistortionSums merged(const std::vector<RateDistortionSums>& parts);

/// AIS from the prior with an AnnealObserver at every temperature. Its results have the columns of
/// its sums (MethodResult::columns). `reverse` adds bounds in both directions, for targets with
/// exact draws.
///
///     crais::RateDistortionMethod method({path, transition, nullptr}, false);
///     const auto [result, curve] = method.curve(problem, plan, rng);
class RateDistortionMethod : public Method {
 public:
  /// Throws Error kArgument unless the path is geometric and there is no resampling.
  RateDistortionMethod(AnnealingParts parts, bool reverse);

  struct Curve {
    MethodResult result;
    RateDistortion curve;
  };
  /// The base of `problem` must be its prior, and all problems must share the plan; otherwise
  /// throws Error kArgument. Cost: one anneal; with `reverse`, two.
  Curve curve(const Problem& problem, const Plan& plan, at::Generator& rng) const;

  MethodResult estimate(const Problem& problem, const Plan& plan,
                        at::Generator& rng) const override;
  int64_t num_anneals() const override { return reverse_ ? 2 : 1; }
  bool needs_exact_draws() const override { return reverse_; }

 private:
  Curve of_block(const Problem& problem, const Plan& plan, at::Generator& rng) const;

  AnnealingParts parts_;
  bool reverse_;
};

/// Makes "rate-distortion" or "rate-distortion:reverse=1", as a MethodFactory. It is not in the
/// registry: a curve needs more than a name, such as the units of its distortion.
std::unique_ptr<Method> make_rate_distortion(const std::string& name, const AnnealingParts& parts);

}  // namespace crais
