// Stochastic volatility of a stock index.        [Kim, Shephard & Chib 1998; inference-gym 0.0.5]
#include <cmath>
#include <memory>
#include <vector>

#include "targets/replicated_function.h"

namespace crais {
namespace {

// The S&P 500 at the close of 101 days to 24 June 2020, dollars, as inference-gym 0.0.5 carries it
// (Copyright 2020 The TensorFlow Probability Authors, Apache License 2.0).
const std::vector<double> kPrices = {
    3225.52002,  3248.919922, 3297.590088, 3334.689941, 3345.780029, 3327.709961, 3352.090088,
    3357.75,     3379.449951, 3373.939941, 3380.159912, 3370.290039, 3386.149902, 3373.22998,
    3337.75,     3225.889893, 3128.209961, 3116.389893, 2978.76001,  2954.219971, 3090.22998,
    3003.370117, 3130.120117, 3023.939941, 2972.370117, 2746.560059, 2882.22998,  2741.379883,
    2480.639893, 2711.02002,  2386.129883, 2529.189941, 2398.100098, 2409.389893, 2304.919922,
    2237.399902, 2447.330078, 2475.560059, 2630.070068, 2541.469971, 2626.649902, 2584.590088,
    2470.5,      2526.899902, 2488.649902, 2663.679932, 2659.409912, 2749.97998,  2789.820068,
    2761.629883, 2846.060059, 2783.360107, 2799.550049, 2874.560059, 2823.159912, 2736.560059,
    2799.310059, 2797.800049, 2836.73999,  2878.47998,  2863.389893, 2939.51001,  2912.429932,
    2830.709961, 2842.73999,  2868.439941, 2848.419922, 2881.189941, 2929.800049, 2930.189941,
    2870.120117, 2820.0,      2852.5,      2863.699951, 2953.909912, 2922.939941, 2971.610107,
    2948.51001,  2955.449951, 2991.77002,  3036.129883, 3029.72998,  3044.310059, 3055.72998,
    3080.820068, 3122.870117, 3112.350098, 3193.929932, 3232.389893, 3207.179932, 3190.139893,
    3002.100098, 3041.310059, 3066.590088, 3124.73999,  3113.48999,  3115.340088, 3097.73999,
    3117.860107, 3131.290039, 3050.330078};
constexpr int64_t kDays = 100;
constexpr double kLogZ = -573.83995;  // by quadrature over the days' x in turn, phi, mu and sigma

/// log of a half-Cauchy density of scale s, its factor 2 included.
at::Tensor log_half_cauchy(const at::Tensor& x, double s) {
  return std::log(2 / (M_PI * s)) - (x / s).square().log1p();
}

/// Sums of phi^(t - s) shock_s over s <= t: a product of 1 + phi^k (shift by k), k = 1, 2, 4 ...
at::Tensor autoregression(at::Tensor shocks, at::Tensor phi) {
  for (int64_t k = 1; k < shocks.size(-1); k *= 2, phi = phi.square()) {
    const at::Tensor earlier = at::constant_pad_nd(shocks.slice(-1, 0, -k), {k, 0});
    shocks = shocks + phi * earlier;
  }
  return shocks;
}

/// z = (logit of (phi + 1) / 2, mu, log sigma, e [100]): changes of price, less their mean, are
/// N(0, exp(x)), and x = mu + sigma h, where h is autoregressive: phi the factor, e ~ N(0, 1) the
/// shocks, the first one stationary. (phi + 1) / 2 ~ Beta(20, 1.5), mu ~ Cauchy(0, 5), sigma ~ half
/// Cauchy(0, 2).
ReplicatedFunction::LogDensity stochastic_volatility(const at::TensorOptions& tensors) {
  const at::Tensor change = at::tensor(kPrices, at::kDouble).diff();
  const at::Tensor y = (change - change.mean()).to(tensors);
  const double log_beta = std::lgamma(20.0) + std::lgamma(1.5) - std::lgamma(21.5);
  return [=](const at::Tensor& z) {
    const at::Tensor logit = z.slice(-1, 0, 1), mu = z.slice(-1, 1, 2),
                     log_sigma = z.slice(-1, 2, 3), e = z.slice(-1, 3);
    // With the Jacobians: share (1 - share) of the logit, sigma of its log.
    const at::Tensor log_share = at::log_sigmoid(logit), log_rest = at::log_sigmoid(-logit);
    const at::Tensor prior = 20 * log_share + 1.5 * log_rest - log_beta - std::log(5 * M_PI) -
                             (mu / 5).square().log1p() + log_half_cauchy(log_sigma.exp(), 2) +
                             log_sigma;
    // The first shock has variance 1 / (1 - phi^2), and 1 - phi^2 = 4 share (1 - share).
    const at::Tensor first = e.slice(-1, 0, 1) * (-0.5 * (log_share + log_rest)).exp() / 2;
    const at::Tensor h =
        autoregression(at::cat({first, e.slice(-1, 1)}, -1), 2 * log_share.exp() - 1);
    const at::Tensor x = mu + log_sigma.exp() * h;
    const at::Tensor seen = normal_log_density(y * (-0.5 * x).exp()) - 0.5 * x;
    return prior.sum(-1) + normal_log_density(e).sum(-1) + seen.sum(-1);
  };
}

const Enrol<TargetRegistry> kEnrolStochasticVolatility(
    "stochastic-volatility",
    {"stochastic-volatility",
     "daily volatility of the S&P 500 over 100 days, autoregressive; its shocks standardised",
     "stochastic-volatility", [](Spec&, const TargetOptions& options) {
       return std::make_unique<ReplicatedFunction>(options, kDays + 3, kLogZ,
                                                   stochastic_volatility(options.tensors));
     }});

}  // namespace
}  // namespace crais
