#include "targets/model_posterior.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "util/error.h"

namespace crais {
namespace {

/// Half the distance of a difference quotient, in units of the latent: truncation errs by its
/// square and float32 by 1e-7 over it, both far below what a base can feel.
constexpr double kStep = 1e-2;

/// z [N,D] -> [N, 2 D, D]: each row moved up and down along each axis.
at::Tensor displaced(const at::Tensor& z) {
  const at::Tensor steps = kStep * at::eye(z.size(1), z.options());
  return z.unsqueeze(1) + at::cat({steps, -steps});
}

/// Values [N, 2 D, M] at `displaced` points -> [N, D, M] derivatives.
at::Tensor derivatives(const at::Tensor& values) {
  const std::vector<at::Tensor> halves = values.chunk(2, 1);
  return (halves[0] - halves[1]) / (2 * kStep);
}

at::Tensor symmetric(const at::Tensor& matrices) {
  return 0.5 * (matrices + matrices.transpose(1, 2));
}

}  // namespace

ModelPosterior::ModelPosterior(std::shared_ptr<const LatentModel> model, at::Tensor data,
                               at::Tensor latents)
    : model_(std::move(model)), data_(std::move(data)), latents_(std::move(latents)) {
  const std::vector<int64_t>& shape = model_->description().data_shape;
  if (data_.dim() < 1 || data_.sizes().slice(1) != at::IntArrayRef(shape))
    throw argument_error("data must be [P, ...] of the model's shape");
}

Evaluation ModelPosterior::evaluate(const at::Tensor& z) const {
  const int64_t problems = z.size(0), particles = z.size(1), rows = problems * particles;
  const at::Tensor latents = z.reshape({rows, dim()});
  const at::Tensor owner =
      at::arange(problems, z.options().dtype(at::kLong)).repeat_interleave(particles);
  at::Tensor value = at::empty({rows}, z.options()), grad = at::empty({rows, dim()}, z.options());
  const int64_t batch = model_->batch();
  for (int64_t begin = 0; begin < rows; begin += batch) {
    const int64_t end = std::min(begin + batch, rows);
    const LatentModel::Density part = model_->joint(
        latents.slice(0, begin, end), data_.index_select(0, owner.slice(0, begin, end)));
    value.slice(0, begin, end).copy_(part.value);
    grad.slice(0, begin, end).copy_(part.grad);
  }
  return {value.view({problems, particles}), grad.view({problems, particles, dim()})};
}

Evaluation ModelPosterior::evaluate_with_graph(const at::Tensor& /*z*/) const {
  throw argument_error("the `method` mcd needs second derivatives, which an exported model lacks");
}

std::shared_ptr<const Target> ModelPosterior::select(const at::Tensor& index) const {
  return std::make_shared<ModelPosterior>(
      model_, data_.index_select(0, index),
      latents_.defined() ? latents_.index_select(0, index) : latents_);
}

at::Tensor ModelPosterior::curvature(const at::Tensor& z) const {
  if (!model_->description().has("output")) return hessian(z);
  at::Tensor precision = prior_precision(z);
  for (int64_t p = 0; p < z.size(0); ++p) precision[p].add_(gauss_newton(z[p]));
  return precision;
}

int64_t ModelPosterior::curvature_cost() const {
  return model_->description().has("output") ? dim() : 2 * dim();
}

at::Tensor ModelPosterior::gauss_newton(const at::Tensor& z) const {
  const at::Tensor points = displaced(z.unsqueeze(0))[0];
  std::vector<at::Tensor> values;
  for (const at::Tensor& rows : points.split(model_->batch()))
    values.push_back(model_->output(rows)->value);
  const at::Tensor jacobian = derivatives(at::cat(values).unsqueeze(0))[0];
  const at::Tensor root = model_->output(z.unsqueeze(0))->weight.sqrt();
  const at::Tensor scaled = jacobian * root;
  return at::mm(scaled, scaled.t());
}

at::Tensor ModelPosterior::prior_precision(const at::Tensor& z) const {
  if (!model_->description().has("prior"))
    return at::eye(dim(), z.options()).repeat({z.size(0), 1, 1});
  const at::Tensor points = displaced(z);
  const at::Tensor grad = model_->prior(points.flatten(0, 1))->grad.view_as(points);
  return symmetric(-derivatives(grad));
}

at::Tensor ModelPosterior::hessian(const at::Tensor& z) const {
  return symmetric(-derivatives(evaluate(displaced(z)).grad));
}

std::optional<AffineMap> ModelPosterior::amortised_base() const {
  if (!model_->description().has("encode")) return {};
  std::vector<at::Tensor> locs, scales;
  for (const at::Tensor& part : data_.split(model_->batch())) {
    const LatentModel::Posterior q = *model_->encode(part);
    locs.push_back(q.loc);
    scales.push_back(q.scale);
  }
  return AffineMap(at::cat(locs), at::cat(scales));
}

std::vector<std::string> ModelPosterior::base_candidates() const { return {"best:1.1", "prior"}; }

AffineMap ModelPosterior::prior_base() const {
  const auto moments = model_->prior_moments();
  if (!moments) return Target::prior_base();
  const int64_t problems = num_problems();
  return {moments->loc.to(options()).expand({problems, dim()}).contiguous(),
          moments->scale_tril.to(options()).expand({problems, dim(), dim()}).contiguous()};
}

std::optional<at::Tensor> ModelPosterior::exact_sample(int64_t k, at::Generator& /*rng*/) const {
  if (!latents_.defined()) return {};
  return latents_.unsqueeze(1).repeat({1, k, 1});
}

int64_t ModelPosterior::working_memory() const {
  const int64_t values = model_->description().num_values();
  return static_cast<int64_t>(sizeof(float)) * (model_->batch() + 4 * dim()) * 4 * values;
}

}  // namespace crais
