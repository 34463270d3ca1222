#include "models/likelihood.h"

#include <cmath>
#include <limits>

#include "core/spec.h"
#include "util/error.h"
#include "util/format.h"

namespace crais {

at::Tensor Likelihood::log_prob(const at::Tensor& x, const at::Tensor& output) const {
  if (is_bernoulli()) return (x * output - at::softplus(output)).sum(-1);
  const double log_scale = std::log(noise_sd) + 0.5 * std::log(2.0 * M_PI);
  return (-0.5 * ((x - output) / noise_sd).square() - log_scale).sum(-1);
}

at::Tensor Likelihood::grad(const at::Tensor& x, at::Tensor output) const {
  if (is_bernoulli()) return at::sub_out(output, x, output.sigmoid_());
  return at::sub_out(output, x, output).div_(noise_sd * noise_sd);
}

at::Tensor Likelihood::fisher(const at::Tensor& output) const {
  if (!is_bernoulli()) return at::full_like(output, 1 / (noise_sd * noise_sd));
  const at::Tensor p = at::sigmoid(output);
  return p * (1 - p);
}

at::Tensor Likelihood::root_fisher(const at::Tensor& output) const {
  return is_bernoulli() ? fisher(output).sqrt() : at::full_like(output, 1 / noise_sd);
}

at::Tensor Likelihood::mean(const at::Tensor& output) const {
  return is_bernoulli() ? at::sigmoid(output) : output;
}

at::Tensor Likelihood::draw(const at::Tensor& output, const at::Tensor& uniform) const {
  if (is_bernoulli()) return uniform.lt(at::sigmoid(output)).to(output.scalar_type());
  return output + noise_sd * std::sqrt(2.0) * at::erfinv(2 * uniform - 1);
}

Likelihood parse_likelihood(const std::string& text) {
  Spec spec(text);
  Likelihood likelihood;
  if (spec.name() == "gaussian") {
    likelihood.family = Likelihood::Family::kGaussian;
    likelihood.noise_sd = spec.number("sd", 1e-6, 1e6);
  } else if (spec.name() != "bernoulli") {
    throw argument_error("unknown likelihood '" + text + "'; choose from bernoulli, gaussian:SD");
  }
  spec.finish();
  return likelihood;
}

std::string to_string(const Likelihood& likelihood) {
  return likelihood.is_bernoulli() ? "bernoulli" : "gaussian:" + shortest(likelihood.noise_sd);
}

DecoderLikelihood parse_decoder_likelihood(const std::string& text) {
  Spec spec(text);
  if (spec.name() != "bernoulli") return {parse_likelihood(text), {}};
  const std::string outputs = spec.word("outputs", "");
  spec.finish();
  if (outputs.empty()) return {};
  if (outputs != "probs" && outputs != "logits")
    throw argument_error("the outputs of bernoulli are probs or logits, not '" + outputs + "'");
  return {Likelihood{}, outputs == "probs"};
}

at::Tensor logits_of(const at::Tensor& probs) {
  const bool is_double = probs.scalar_type() == at::kDouble;
  const double eps =
      is_double ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  return probs.clamp_min(std::numeric_limits<float>::min()).log() -
         at::log1p(-probs.clamp_max(1 - eps / 2));
}

}  // namespace crais
