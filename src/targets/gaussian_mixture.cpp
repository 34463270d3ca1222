#include "targets/gaussian_mixture.h"

#include <cmath>

namespace crais {
namespace {

/// log of the integral of each component, [C].
at::Tensor log_masses(const at::Tensor& variances, const at::Tensor& log_weights) {
  return log_weights + 0.5 * (2 * M_PI * variances).log().sum(-1);
}

}  // namespace

GaussianMixture::GaussianMixture(const TargetOptions& options, const at::Tensor& means,
                                 const at::Tensor& variances, const at::Tensor& log_weights)
    : Replicated(options, means.size(1),
                 log_masses(variances, log_weights).logsumexp(0).item<double>()),
      means_(means.to(options.tensors)),
      variances_(variances.to(options.tensors)),
      log_weights_(log_weights.to(options.tensors)),
      shares_(log_masses(variances, log_weights).softmax(0).to(options.tensors)) {}

at::Tensor GaussianMixture::log_terms(const at::Tensor& z) const {
  const at::Tensor offset = z.unsqueeze(-2) - means_;
  return log_weights_ - 0.5 * (offset.square() / variances_).sum(-1);
}

at::Tensor GaussianMixture::log_density(const at::Tensor& z) const {
  return log_terms(z).logsumexp(-1);
}

Evaluation GaussianMixture::evaluate(const at::Tensor& z) const {
  const at::Tensor terms = log_terms(z);
  const at::Tensor share = terms.softmax(-1);  // share of each component in gamma(z)
  return {terms.logsumexp(-1),
          share.matmul(means_ / variances_) - share.matmul(variances_.reciprocal()) * z};
}

std::optional<Components> GaussianMixture::components(const at::Tensor& z) const {
  return Components{log_terms(z).softmax(-1).to(at::kDouble), shares_.to(at::kDouble)};
}

std::optional<at::Tensor> GaussianMixture::draw(const at::Tensor& like, at::Generator& rng) const {
  const at::Tensor component =
      at::multinomial(shares_, like.size(0) * like.size(1), /*replacement=*/true, rng)
          .view({like.size(0), like.size(1)});
  const at::Tensor noise = at::empty_like(like).normal_(0, 1, rng);
  return means_.index({component}) + variances_.sqrt().index({component}) * noise;
}

}  // namespace crais
