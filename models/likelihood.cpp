#include "models/likelihood.h"

#include <cmath>

#include "core/spec.h"
#include "util/error.h"
#include "util/format.h"

namespace crais {

namespace {

using Family = Likelihood::Family;

/// `near` where |x| < `bound`, else `far` at x. `far` may be infinite at 0.
template <typename Far>
at::Tensor spliced(const at::Tensor& x, double bound, const at::Tensor& near, const Far& far) {
  const at::Tensor is_near = x.abs() < bound;
  return at::where(is_near, near, far(at::where(is_near, at::ones_like(x), x)));
}

/// log(2 sinh(l / 2) / l), the log normaliser of exp((x - 1/2) l) on [0, 1].
at::Tensor log_normalizer(const at::Tensor& logits) {
  const at::Tensor square = logits.square();
  const at::Tensor near = square * (1.0 / 24 - square * (1.0 / 2880 - square / 181440));
  return spliced(logits, 0.05, near, [](const at::Tensor& l) {
    const at::Tensor size = l.abs();
    return 0.5 * size + (-at::expm1(-size) / size).log();
  });
}

/// E[x] - 1/2, the derivative of `log_normalizer`.
at::Tensor mean_above_half(const at::Tensor& logits) {
  const at::Tensor square = logits.square();
  const at::Tensor near = logits * (1.0 / 12 - square * (1.0 / 720 - square / 30240));
  return spliced(logits, 0.05, near,
                 [](const at::Tensor& l) { return -0.5 - 1 / at::expm1(-l) - 1 / l; });
}

/// The variance of x, the derivative of `mean_above_half`.
at::Tensor variance(const at::Tensor& logits) {
  const at::Tensor square = logits.square();
  const at::Tensor near = 1.0 / 12 - square * (1.0 / 240 - square * (1.0 / 6048 - square / 172800));
  return spliced(logits, 0.7, near, [](const at::Tensor& l) {
    return l.square().reciprocal() - 0.25 * (0.5 * l).sinh().square().reciprocal();
  });
}

/// x from uniform numbers, by inversion.
at::Tensor inverse_cdf(const at::Tensor& logits, const at::Tensor& uniform) {
  const at::Tensor u = uniform.to(logits.scalar_type());
  return spliced(logits, 1e-3, u + 0.5 * logits * u * (1 - u),
                 [&](const at::Tensor& l) {
                   const at::Tensor steep = -l.abs();  // measured from the end that x is near to
                   const at::Tensor mirrored = at::where(l > 0, 1 - u, u);
                   const at::Tensor falling = at::log1p(mirrored * at::expm1(steep)) / steep;
                   return at::where(l > 0, 1 - falling, falling);
                 })
      .clamp(0, 1);
}

}  // namespace

at::Tensor Likelihood::log_prob(const at::Tensor& x, const at::Tensor& output) const {
  switch (family) {
    case Family::kBernoulli:
      return (x * output - at::softplus(output)).sum(-1);
    case Family::kContinuousBernoulli:
      return ((x - 0.5) * output - log_normalizer(output)).sum(-1);
    case Family::kGaussian:
      break;
  }
  const double log_scale = std::log(noise_sd) + 0.5 * std::log(2.0 * M_PI);
  return (-0.5 * ((x - output) / noise_sd).square() - log_scale).sum(-1);
}

at::Tensor Likelihood::grad(const at::Tensor& x, at::Tensor output) const {
  switch (family) {
    case Family::kBernoulli:
      return at::sub_out(output, x, output.sigmoid_());
    case Family::kContinuousBernoulli:
      return x - mean(output);
    case Family::kGaussian:
      break;
  }
  return at::sub_out(output, x, output).div_(noise_sd * noise_sd);
}

at::Tensor Likelihood::fisher(const at::Tensor& output) const {
  if (family == Family::kGaussian) return at::full_like(output, 1 / (noise_sd * noise_sd));
  if (family == Family::kContinuousBernoulli) return variance(output);
  const at::Tensor p = at::sigmoid(output);
  return p * (1 - p);
}

at::Tensor Likelihood::root_fisher(const at::Tensor& output) const {
  return is_of_logits() ? fisher(output).sqrt() : at::full_like(output, 1 / noise_sd);
}

at::Tensor Likelihood::mean(const at::Tensor& output) const {
  if (family == Family::kGaussian) return output;
  return is_bernoulli() ? at::sigmoid(output) : 0.5 + mean_above_half(output);
}

at::Tensor Likelihood::draw(const at::Tensor& output, const at::Tensor& uniform) const {
  if (is_bernoulli()) return uniform.lt(at::sigmoid(output)).to(output.scalar_type());
  if (family == Family::kContinuousBernoulli) return inverse_cdf(output, uniform);
  return output + noise_sd * std::sqrt(2.0) * at::erfinv(2 * uniform - 1);
}

Likelihood parse_likelihood(const std::string& text) {
  Spec spec(text);
  Likelihood likelihood;
  if (spec.name() == "gaussian") {
    likelihood.family = Likelihood::Family::kGaussian;
    likelihood.noise_sd = spec.number("sd", 1e-6, 1e6);
  } else if (spec.name() == "continuous-bernoulli") {
    likelihood.family = Family::kContinuousBernoulli;
  } else if (spec.name() != "bernoulli") {
    throw argument_error("unknown likelihood '", text,
                         "'; choose from bernoulli, continuous-bernoulli, gaussian:SD");
  }
  spec.finish();
  return likelihood;
}

std::string to_string(const Likelihood& likelihood) {
  if (likelihood.family == Family::kContinuousBernoulli) return "continuous-bernoulli";
  return likelihood.is_bernoulli() ? "bernoulli" : "gaussian:" + shortest(likelihood.noise_sd);
}

}  // namespace crais
