#include "targets/model_posterior.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>
#include <vector>

#include "core/plain.h"
#include "core/rng.h"
#include "kernels/fused_decoder.h"
#include "models/decoded_model.h"
#include "util/error.h"
#include "util/interrupt.h"
#include "util/memory.h"

namespace crais {
namespace {

/// Half the distance of a difference quotient, in units of the latent: truncation errs by its
/// square and float32 by 1e-7 over it, both far below what a base can feel.
constexpr double kDifference = 1e-2;

/// Above so many dimensions the likelihood's curvature is sought along its strongest directions.
constexpr int64_t kMostDense = 256;
constexpr int64_t kDirections = 64;

/// Rows that a fused evaluator takes in a tenth of a second or so.
int64_t rows_at_once(const DecoderNetwork& decoder) {
  constexpr int64_t kMultiplications = int64_t{1} << 31, kLeast = 16;
  int64_t of_row = 1;
  for (const DecoderLayer& layer : decoder.layers) of_row += layer.multiplications();
  return std::max(kLeast, kMultiplications / of_row);
}

/// z [N,D] -> [N, 2 D, D]: each row moved up and down along each axis.
at::Tensor displaced(const at::Tensor& z) {
  const at::Tensor steps = kDifference * at::eye(z.size(1), z.options());
  return z.unsqueeze(1) + at::cat({steps, -steps});
}

/// Values [N, 2 D, M] at `displaced` points -> [N, D, M] derivatives.
at::Tensor derivatives(const at::Tensor& values) {
  const std::vector<at::Tensor> halves = values.chunk(2, 1);
  return (halves[0] - halves[1]) / (2 * kDifference);
}

at::Tensor symmetric(const at::Tensor& matrices) {
  return 0.5 * (matrices + matrices.transpose(1, 2));
}

}  // namespace

std::shared_ptr<const FusedDecoder> fused_decoder_of(const LatentModel& model) {
  return model.decoder() != nullptr ? make_fused_decoder(*model.decoder()) : nullptr;
}

ModelPosterior::ModelPosterior(const std::shared_ptr<const LatentModel>& model,
                               const at::Tensor& data, at::Tensor latents, at::Tensor labels)
    : ModelPosterior(model, data, std::move(latents), std::move(labels), fused_decoder_of(*model)) {
}

ModelPosterior::ModelPosterior(std::shared_ptr<const LatentModel> model, const at::Tensor& data,
                               at::Tensor latents, at::Tensor labels,
                               std::shared_ptr<const FusedDecoder> fused)
    : model_(std::move(model)),
      data_(data.contiguous()),
      latents_(std::move(latents)),
      labels_(std::move(labels)),
      fused_(std::move(fused)),
      fused_rows_(fused_ ? rows_at_once(*model_->decoder()) : 1) {
  const ModelDescription& described = model_->description();
  if (data_.dim() < 1 || data_.sizes().slice(1) != at::IntArrayRef(described.data_shape))
    throw argument_error("data must be [P, ...] of the model's shape");
  if (labels_.defined() != described.labels.has_value())
    throw argument_error(labels_.defined() ? "labels are for a conditional model p(x | y)"
                                           : "a conditional model p(x | y) needs labels");
  if (labels_.defined() && (labels_.dim() < 1 || labels_.size(0) != data_.size(0) ||
                            labels_.sizes().slice(1) != at::IntArrayRef(described.labels->shape)))
    throw argument_error("labels must be [P, ...] of the model's shape of labels");
}

Evaluation ModelPosterior::evaluate(const at::Tensor& z) const { return evaluated(z, forces_); }

const FusedDecoder* ModelPosterior::fused_for(const at::Tensor& z, at::ScalarType forces) const {
  if (!fused_ || !is_plain(z.contiguous()) || !is_plain(data_)) return nullptr;
  return forces == at::kFloat ? fused_.get() : fused_->cheap().get();
}

at::Tensor ModelPosterior::log_density(const at::Tensor& z) const {
  const FusedDecoder* fused = fused_for(z, forces_);
  if (fused == nullptr) return evaluate(z).log_density;
  return in_blocks(z,
                   [&](const at::Tensor& part, const at::Tensor& data) {
                     return Evaluation{fused->log_density(part, data), {}};
                   })
      .log_density;
}

Evaluation ModelPosterior::in_blocks(
    const at::Tensor& z,
    const std::function<Evaluation(const at::Tensor& z, const at::Tensor& data)>& evaluate) const {
  const int64_t problems = z.size(0), particles = z.size(1);
  const at::Tensor data = data_.flatten(1);
  if (problems * particles <= fused_rows_) return evaluate(z.contiguous(), data);
  const int64_t height = std::max<int64_t>(1, fused_rows_ / particles);
  Evaluation found{at::empty({problems, particles}, z.options().dtype(at::kDouble)),
                   at::empty(z.sizes(), z.options())};
  for (int64_t p = 0; p < problems; p += height)
    for (int64_t k = 0; k < particles; k += fused_rows_) {
      stop_if_interrupted();
      const auto block = [&](const at::Tensor& all) {
        return all.slice(0, p, std::min(p + height, problems))
            .slice(1, k, std::min(k + fused_rows_, particles));
      };
      const Evaluation part =
          evaluate(block(z).contiguous(), data.slice(0, p, std::min(p + height, problems)));
      block(found.log_density).copy_(part.log_density);
      if (part.grad.defined()) block(found.grad).copy_(part.grad);
    }
  return found;
}

bool ModelPosterior::has_cheap_kernel(at::ScalarType dtype) const {
  return dtype == at::kBFloat16 && fused_ && fused_->cheap();
}

bool ModelPosterior::forces_pay(at::ScalarType dtype) const {
  return fused_ ? has_cheap_kernel(dtype) : model_->forces_pay(dtype);
}

std::shared_ptr<const Target> ModelPosterior::with_forces(at::ScalarType dtype) const {
  if (!has_cheap_kernel(dtype) && !model_->has_forces(dtype)) return nullptr;
  auto target = std::make_shared<ModelPosterior>(*this);
  target->forces_ = dtype;
  return target;
}

Evaluation ModelPosterior::evaluated(const at::Tensor& z, at::ScalarType forces) const {
  if (const FusedDecoder* fused = fused_for(z, forces))
    return in_blocks(z, [&](const at::Tensor& part, const at::Tensor& data) {
      return fused->evaluate(part, data);
    });
  const int64_t problems = z.size(0), particles = z.size(1), rows = problems * particles;
  const at::Tensor latents = z.reshape({rows, dim()});
  const at::Tensor owner =
      at::arange(problems, z.options().dtype(at::kLong)).repeat_interleave(particles);
  const LatentModel::Density all = density(latents, owner, model_->batch(), forces);
  return {all.value.view({problems, particles}), all.grad.view({problems, particles, dim()})};
}

LatentModel::Density ModelPosterior::density(const at::Tensor& z, const at::Tensor& owner,
                                             int64_t batch, at::ScalarType forces) const {
  const int64_t rows = z.size(0);
  at::Tensor value = at::empty({rows}, z.options()), grad = at::empty_like(z);
  for (int64_t begin = 0; begin < rows; begin += batch) {
    const int64_t end = std::min(begin + batch, rows);
    const at::Tensor part = z.slice(0, begin, end), index = owner.slice(0, begin, end);
    LatentModel::Density found;
    stop_if_interrupted();
    try {
      const at::Tensor data = data_.index_select(0, index), labels = labels_of(index);
      found = forces == at::kFloat ? model_->joint(part, data, labels)
                                   : model_->joint_with_forces(part, data, labels, forces);
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      // Short memory has many names in the libraries below: fewer rows are tried whatever it was.
      if (end - begin > 1) {
        found = density(part, index, (end - begin + 1) / 2, forces);
      } else if (is_out_of_memory(error)) {
        throw std::bad_alloc();
      } else {
        const std::string text = error.what();
        throw data_error(model_->description().name +
                         ": log p(x, z) cannot be computed: " + text.substr(0, text.find('\n')));
      }
    }
    value.slice(0, begin, end).copy_(found.value);
    grad.slice(0, begin, end).copy_(found.grad);
  }
  return {value, grad};
}

at::Tensor ModelPosterior::labels_of(const at::Tensor& index) const {
  return labels_.defined() ? labels_.index_select(0, index) : labels_;
}

std::shared_ptr<const Target> ModelPosterior::select(const at::Tensor& index) const {
  auto part = std::make_shared<ModelPosterior>(*this);
  part->data_ = data_.index_select(0, index);
  if (latents_.defined()) part->latents_ = latents_.index_select(0, index);
  part->labels_ = labels_of(index);
  return part;
}

at::Tensor ModelPosterior::curvature(const at::Tensor& z) const {
  if (dim() > kMostDense) return low_rank(z);
  if (!model_->description().has("output")) return hessian(z);
  at::Tensor precision = prior_precision(z);
  const at::Tensor all = at::arange(z.size(0), z.options().dtype(at::kLong));
  for (const at::Tensor& index : all.split(model_->batch())) {
    const at::Tensor part = z.index_select(0, index);
    const at::Tensor weights = fisher_weights(part, index);
    for (int64_t i = 0; i < part.size(0); ++i) {
      const at::Tensor scaled = jacobian(part[i], index[i]) * weights[i].sqrt();
      precision[index[i].item<int64_t>()].add_(at::mm(scaled, scaled.t()));
    }
  }
  return precision;
}

int64_t ModelPosterior::curvature_cost() const {
  if (dim() > kMostDense) return 2 * kDirections;
  return model_->description().has("output") ? dim() : 2 * dim();
}

at::Tensor ModelPosterior::jacobian(const at::Tensor& z, const at::Tensor& problem) const {
  const at::Tensor points = displaced(z.unsqueeze(0))[0];
  const bool is_fused = fused_for(points, at::kFloat) != nullptr;
  std::vector<at::Tensor> values;
  for (const at::Tensor& rows : points.split(is_fused ? fused_rows_ : model_->batch())) {
    stop_if_interrupted();
    values.push_back(is_fused
                         ? fused_->decode(rows)
                         : model_->output(rows, labels_of(problem.expand({rows.size(0)})))->value);
  }
  return derivatives(at::cat(values).unsqueeze(0))[0];
}

at::Tensor ModelPosterior::fisher_weights(const at::Tensor& z, const at::Tensor& problems) const {
  if (fused_for(z, at::kFloat) == nullptr) return model_->output(z, labels_of(problems))->weight;
  return crais::fisher_weights(model_->decoder()->likelihood, fused_->decode(z));
}

at::Tensor ModelPosterior::prior_precision(const at::Tensor& z) const {
  if (!model_->description().has("prior"))
    return at::eye(dim(), z.options()).repeat({z.size(0), 1, 1});
  const at::Tensor points = displaced(z);
  const at::Tensor grad = model_->prior(points.flatten(0, 1))->grad.view_as(points);
  return symmetric(-derivatives(grad));
}

at::Tensor ModelPosterior::hessian(const at::Tensor& z) const {
  return symmetric(-derivatives(evaluated(displaced(z), at::kFloat).grad));
}

at::Tensor ModelPosterior::low_rank(const at::Tensor& z) const {
  const at::Tensor prior = prior_precision(z);
  // Minus the Hessian of log p(x | z) times v [P,D], by a difference of gradients.
  const auto likelihood_times = [&](const at::Tensor& v) {
    const at::Tensor steps = kDifference * at::stack({v, -v}, 1);
    const at::Tensor slope =
        derivatives(evaluated(z.unsqueeze(1) + steps, at::kFloat).grad).squeeze(1);
    return -slope - at::matmul(prior, v.unsqueeze(2)).squeeze(2);
  };
  at::Generator rng = make_generator(0);  // the start is any vector, the same in each run
  const auto unit = [](const at::Tensor& v) {
    return v / v.norm(2, {1}, /*keepdim=*/true).clamp_min(1e-30);
  };
  at::Tensor next = unit(at::randn({dim()}, rng, z.options()).expand_as(z));
  std::vector<at::Tensor> basis, images;
  for (int64_t i = 0; i < kDirections; ++i) {
    basis.push_back(next);
    images.push_back(likelihood_times(next));
    const at::Tensor known = at::stack(basis, 1);  // [P,i+1,D]
    next = images.back();
    for (int twice = 0; twice < 2; ++twice)  // once leaves rounding errors that grow
      next =
          next - at::matmul(at::matmul(next.unsqueeze(1), known.transpose(1, 2)), known).squeeze(1);
    next = unit(next);
  }
  const at::Tensor directions = at::stack(basis, 1);
  const at::Tensor projected =
      symmetric(at::matmul(directions, at::stack(images, 1).transpose(1, 2)));
  const auto [values, vectors] = at::linalg_eigh(projected);
  const at::Tensor axes = at::matmul(vectors.transpose(1, 2), directions);
  return prior + at::matmul(axes.transpose(1, 2) * values.clamp_min(0).unsqueeze(1), axes);
}

std::optional<AffineMap> ModelPosterior::amortised_base() const {
  if (!model_->description().has("encode")) return {};
  std::vector<at::Tensor> locs, scales;
  const at::Tensor all = at::arange(num_problems(), data_.options().dtype(at::kLong));
  for (const at::Tensor& index : all.split(model_->batch())) {
    const LatentModel::Posterior q =
        *model_->encode(data_.index_select(0, index), labels_of(index));
    locs.push_back(q.loc);
    scales.push_back(q.scale);
  }
  return AffineMap::encoded(at::cat(locs), at::cat(scales));
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
