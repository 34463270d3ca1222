// Hierarchical models of few data, with scales as logarithms.
#include <cmath>
#include <memory>

#include "targets/replicated_function.h"
#include "util/error.h"

namespace crais {
namespace {

/// log of a half-Cauchy density of scale s without its factor 2, as in Stan's `~`.
at::Tensor log_cauchy(const at::Tensor& x, double s) {
  return -std::log(M_PI * s) - (x / s).square().log1p();
}

// Effects of coaching in eight schools and their standard errors.              [Rubin 1981]
const std::vector<double> kEffects = {28, 8, -3, 7, -1, 1, 18, 12};
const std::vector<double> kErrors = {15, 10, 16, 11, 9, 11, 10, 18};

/// z = (mu, log tau, theta or its standardised form [8]); mu ~ N(0, 5^2), tau ~ half Cauchy(0, 5).
ReplicatedFunction::LogDensity eight_schools(bool centred, const at::TensorOptions& tensors) {
  const at::Tensor y = at::tensor(kEffects, tensors), sd = at::tensor(kErrors, tensors);
  return [=](const at::Tensor& z) {
    const at::Tensor mu = z.slice(-1, 0, 1), log_tau = z.slice(-1, 1, 2), own = z.slice(-1, 2);
    const at::Tensor tau = log_tau.exp();
    const at::Tensor theta = centred ? own : mu + tau * own;
    const at::Tensor effects =
        centred ? normal_log_density((theta - mu) / tau) - log_tau : normal_log_density(own);
    const at::Tensor seen = normal_log_density((y - theta) / sd) - sd.log();
    return (normal_log_density(mu, 0, 5) + log_cauchy(tau, 5) + log_tau).sum(-1) +
           (effects + seen).sum(-1);
  };
}

constexpr double kLogZOfEightSchools = -32.0044946;  // by quadrature over mu and tau

const Enrol<TargetRegistry> kEnrolEightSchools(
    "eight-schools",
    {"eight-schools[:centred=0|1]",
     "effects in eight schools, centred (1) or not; tau half Cauchy without its factor 2",
     "eight-schools:centred=0", [](Spec& spec, const TargetOptions& options) {
       const bool centred = spec.integer("centred", 0, 1, 1) == 1;
       return std::make_unique<ReplicatedFunction>(options, 10, kLogZOfEightSchools,
                                                   eight_schools(centred, options.tensors));
     }});

// Ten measurements of variance 1, of which three stand out.
const std::vector<double> kMeasured = {4, 3, -2.5, 0.3, -0.4, 0.8, -0.1, 0.5, -1, 0.2};
constexpr double kLogZOfHorseshoe = -21.3599678270;  // by quadrature over tau and each lambda

/// z = (log tau, log lambda [10], theta or its standardised form [10]); theta_i ~ N(0, (tau
/// lambda_i)^2), and tau and lambda_i are half Cauchy.              [Carvalho, Polson & Scott 2010]
ReplicatedFunction::LogDensity horseshoe(bool centred, const at::TensorOptions& tensors) {
  const at::Tensor y = at::tensor(kMeasured, tensors);
  const int64_t count = y.size(0);
  return [=](const at::Tensor& z) {
    const at::Tensor log_scales = z.slice(-1, 0, 1 + count), own = z.slice(-1, 1 + count);
    const at::Tensor s = log_scales.slice(-1, 0, 1) + log_scales.slice(-1, 1);
    const at::Tensor theta = centred ? own : s.exp() * own;
    const at::Tensor effects =
        centred ? normal_log_density(theta * (-s).exp()) - s : normal_log_density(own);
    const at::Tensor prior = std::log(2 / M_PI) + log_scales - at::softplus(2 * log_scales);
    return prior.sum(-1) + (effects + normal_log_density(y - theta)).sum(-1);
  };
}

const Enrol<TargetRegistry> kEnrolHorseshoe(
    "horseshoe",
    {"horseshoe[:centred=0|1]",
     "ten means under a horseshoe prior, centred (1) or not: every mean has a scale of its own",
     "horseshoe:centred=0", [](Spec& spec, const TargetOptions& options) {
       const bool centred = spec.integer("centred", 0, 1, 1) == 1;
       return std::make_unique<ReplicatedFunction>(options, 21, kLogZOfHorseshoe,
                                                   horseshoe(centred, options.tensors));
     }});

// Seeds that germinated and seeds sown on 21 plates, with two kinds of seed and two root extracts.
// [Crowder 1978]
const std::vector<double> kGerminated = {10, 23, 23, 26, 17, 5, 53, 55, 32, 46, 10,
                                         8,  10, 8,  23, 0,  3, 22, 15, 32, 3};
const std::vector<double> kSown = {39, 62, 81, 51, 39, 6,  74, 72, 51, 79, 13,
                                   16, 30, 28, 45, 4,  12, 41, 30, 51, 7};
constexpr int64_t kPlates = 21;
constexpr double kLogZOfSeeds = -73.4061794;  // by quadrature over tau, four means and each effect

/// z = (log tau, a [4], b [21]). tau ~ Gamma(0.01, 0.01) is the precision of the plates' effects b;
/// a ~ N(0, 10^2) holds intercept, kind, extract and their interaction. Binomial coefficients are
/// kept.
ReplicatedFunction::LogDensity seeds(const at::TensorOptions& tensors) {
  const at::Tensor r = at::tensor(kGerminated, tensors), n = at::tensor(kSown, tensors);
  const at::Tensor plate = at::arange(kPlates, tensors);
  const at::Tensor kind = (plate >= 11).to(tensors);
  const at::Tensor extract = (((plate >= 5) & (plate < 11)) | (plate >= 16)).to(tensors);
  const at::Tensor design = at::stack({at::ones_like(kind), kind, extract, kind * extract});
  const at::Tensor coefficients = at::lgamma(n + 1) - at::lgamma(r + 1) - at::lgamma(n - r + 1);
  return [=](const at::Tensor& z) {
    const at::Tensor log_tau = z.slice(-1, 0, 1), a = z.slice(-1, 1, 5), b = z.slice(-1, 5);
    const at::Tensor eta = a.matmul(design) + b;
    const at::Tensor plates = 0.5 * log_tau - 0.5 * std::log(2 * M_PI) -
                              0.5 * log_tau.exp() * b.square() + coefficients +
                              r * at::log_sigmoid(eta) + (n - r) * at::log_sigmoid(-eta);
    const at::Tensor prior =
        0.01 * std::log(0.01) - std::lgamma(0.01) + 0.01 * log_tau - 0.01 * log_tau.exp();
    return prior.sum(-1) + normal_log_density(a, 0, 10).sum(-1) + plates.sum(-1);
  };
}

const Enrol<TargetRegistry> kEnrolSeeds(
    "seeds", {"seeds", "seeds that germinate on 21 plates: binomial regression, random effects",
              "seeds", [](Spec&, const TargetOptions& options) {
                return std::make_unique<ReplicatedFunction>(options, kPlates + 5, kLogZOfSeeds,
                                                            seeds(options.tensors));
              }});

/// 50 of 100 under Beta(a, b), on the logit scale.
const Enrol<TargetRegistry> kEnrolBetaBinomial(
    "beta-binomial",
    {"beta-binomial[:A,b=B]", "50 of 100 trials under a Beta(A (2), B (5)) prior", "beta-binomial",
     [](Spec& spec, const TargetOptions& options) {
       const double a = spec.number("a", 1e-3, 1e3, 2), b = spec.number("b", 1e-3, 1e3, 5);
       const double prior = std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b);
       const double log_z =
           prior + std::lgamma(a + 50) + std::lgamma(b + 50) - std::lgamma(a + b + 100);
       return std::make_unique<ReplicatedFunction>(options, 1, log_z, [=](const at::Tensor& z) {
         const at::Tensor logit = z.squeeze(-1);
         return (a + 50) * at::log_sigmoid(logit) + (b + 50) * at::log_sigmoid(-logit) + prior;
       });
     }});

}  // namespace
}  // namespace crais
