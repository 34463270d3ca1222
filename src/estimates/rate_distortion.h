/// @file
/// Rate and distortion along the temperatures of one anneal from the prior.
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

/// The distortion of z is what the anneal adds to the prior, d(z) = log p(z) - log gamma(z): minus
/// the log-likelihood. At beta the chains are at q(z) proportional to p(z) exp(-beta d(z)), and
///   distortion D = E_q[d],   rate R = KL(q || p) = -beta D - log Z,   Z = E_p[exp(-beta d)],
/// the point of the curve of rate and distortion whose slope is -beta.  [Huang et al. 2020]
///
/// Of P problems at T+1 temperatures, each as a `Number`; nats.
template <class Number>
struct CurveOf {
  at::Tensor beta;        // [T+1], from 0 to 1
  Number rate;            // log Z is found too low on average, R too high
  Number distortion;      // self-normalised means under the weights
  Number log_normalizer;  // of Z at each temperature
  Number rate_bias, ess;  // to be expected of the rate; fractions. Without errors of their own
  /// What reverse chains find of log Z beyond that; undefined without them. At the end it is an
  /// upper bound less a lower one, on average; before it, an estimate: exact draws are of the end.
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

/// [T+1,P] float64 each. Standard errors are the jackknife's over chains: of the rate, with the
/// dependence of D and log Z in it.
struct CurveValues {
  at::Tensor value, error;
};
using RateDistortion = CurveOf<CurveValues>;

/// The same problems of all parts, in their order.
RateDistortion joined(const std::vector<RateDistortion>& parts);

/// A number of each problem, summed over problems: [T+1] float64 each.
struct CurveSums {
  at::Tensor mean;
  at::Tensor squares;  // sum of squared deviations from the mean
  at::Tensor errors;   // sum of squared standard errors; 0 where there are none
};

/// What a curve keeps of its problems: a few numbers a temperature.
struct RateDistortionSums : CurveOf<CurveSums> {
  int64_t num_problems = 0;
  at::Tensor least_ess;  // [T+1], of any problem

  bool has_gap() const { return gap.mean.defined(); }
};

RateDistortionSums sums_of(const RateDistortion& curve);

/// The same as named columns, [T+1] each, and back: throws Error kData, beginning with `source`,
/// where they are no curve.
std::map<std::string, at::Tensor> columns_of(const RateDistortionSums& sums);
RateDistortionSums sums_from(const std::map<std::string, at::Tensor>& columns, int64_t num_problems,
                             const std::string& source);

/// Of the problems of all parts. Throws Error kData unless they are of the same temperatures.
RateDistortionSums merged(const std::vector<RateDistortionSums>& parts);

/// AIS from the prior that hears of every temperature: an AnnealObserver. Its results have the
/// columns of its sums (MethodResult::columns). `reverse`: bounds both ways, for targets with exact
/// draws.
///
///     crais::RateDistortionMethod method({path, transition, nullptr}, false);
///     const auto [result, curve] = method.curve(problem, plan, rng);
class RateDistortionMethod : public Method {
 public:
  /// Throws Error kArgument unless the path is geometric and nothing is resampled.
  RateDistortionMethod(AnnealingParts parts, bool reverse);

  struct Curve {
    MethodResult result;
    RateDistortion curve;
  };
  /// `problem` is based on its prior, and all problems share the plan; throws Error kArgument
  /// otherwise. Cost: of one anneal, `reverse`: of two.
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

/// "rate-distortion" or "rate-distortion:reverse=1", a MethodFactory. Not in the registry: a curve
/// takes more than a name, such as the units of its distortion.
std::unique_ptr<Method> make_rate_distortion(const std::string& name, const AnnealingParts& parts);

}  // namespace crais
