#include "targets/decoder_posterior.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>
#include <vector>

#include "core/plain.h"
#include "core/rng.h"
#include "kernels/fused_decoder.h"
#include "models/decoder_density.h"
#include "models/function_model.h"
#include "targets/model_prior.h"
#include "util/error.h"
#include "util/interrupt.h"
#include "util/memory.h"

namespace crais {
namespace {

/// Rows of a block for ATen on the CPU, few enough to stay in a cache: 1.25 times as fast as blocks
/// of 4,096 rows, whose logits fill the memory.
constexpr int64_t kRowsByHand = 512;

/// Half the distance of a difference quotient, in units of the latent. The truncation error is of
/// the order of its square, and the float32 error 1e-7 divided by it. Both are too small to affect
/// a base.
constexpr double kDifference = 1e-2;

/// With more dimensions, the likelihood's curvature is computed along its strongest directions
/// only.
constexpr int64_t kMostDense = 256;
constexpr int64_t kDirections = 64;

/// Rows that a fused evaluator computes in about a tenth of a second.
int64_t rows_at_once(const DecoderNetwork& decoder) {
  constexpr int64_t kMultiplications = int64_t{1} << 31, kLeast = 16;
  int64_t of_row = 1;
  for (const Layer& layer : decoder.layers) of_row += layer.multiplications();
  return std::max(kLeast, kMultiplications / of_row);
}

/// z [N,D] -> [N, 2 D, D]: each row displaced up and down along each axis.
at::Tensor displaced(const at::Tensor& z) {
  const at::Tensor steps = kDifference * at::eye(z.size(1), z.options());
  return z.unsqueeze(1) + at::cat({steps, -steps});
}

/// Derivatives [N, D, M] from values [N, 2 D, M] at `displaced` points.
at::Tensor derivatives(const at::Tensor& values) {
  const std::vector<at::Tensor> halves = values.chunk(2, 1);
  return (halves[0] - halves[1]) / (2 * kDifference);
}

at::Tensor symmetric(const at::Tensor& matrices) {
  return 0.5 * (matrices + matrices.transpose(1, 2));
}

/// Runs `evaluate` on blocks of at most `rows` rows and joins the results. A block holds whole
/// problems or particles of one problem. Between blocks the function stops if a signal has arrived.
Evaluation in_blocks(
    const at::Tensor& z, const at::Tensor& x, int64_t rows,
    const std::function<Evaluation(const at::Tensor&, const at::Tensor&)>& evaluate) {
  const int64_t problems = z.size(0), particles = z.size(1);
  if (!z.is_cpu() || problems * particles <= rows) return evaluate(z, x);
  const int64_t dim = problems > 1 ? 0 : 1;
  const int64_t step = problems > 1 ? std::max<int64_t>(1, rows / particles) : rows;
  std::vector<at::Tensor> values, grads;
  for (int64_t begin = 0; begin < z.size(dim); begin += step) {
    stop_if_interrupted();
    const int64_t end = std::min(begin + step, z.size(dim));
    const Evaluation part =
        in_blocks(z.slice(dim, begin, end), dim == 0 ? x.slice(0, begin, end) : x, rows, evaluate);
    values.push_back(part.log_density);
    if (part.grad.defined()) grads.push_back(part.grad);
  }
  return {at::cat(values, dim), grads.empty() ? at::Tensor() : at::cat(grads, dim)};
}

}  // namespace

std::shared_ptr<const FusedDecoder> fused_decoder_of(const LatentModel& model) {
  return model.decoder() != nullptr ? make_fused_decoder(*model.decoder()) : nullptr;
}

std::string evaluator_of(const LatentModel& model, const FusedDecoder* fused,
                         std::optional<at::ScalarType> forces) {
  if (fused == nullptr) return model.evaluator();
  if (!forces) return fused->name();
  return fused->cheap() ? fused->cheap()->name() : model.evaluator();
}

DecoderPosterior::DecoderPosterior(const Vae& vae, const at::Tensor& images, at::Tensor latents,
                                   std::optional<std::shared_ptr<const FusedDecoder>> fused)
    : DecoderPosterior(network_model(vae), images, std::move(latents), {}, std::move(fused)) {}

DecoderPosterior::DecoderPosterior(std::shared_ptr<const LatentModel> model, const at::Tensor& data,
                                   at::Tensor latents, at::Tensor labels,
                                   std::optional<std::shared_ptr<const FusedDecoder>> fused)
    : model_(std::move(model)),
      by_hand_(model_->is_network() ? model_->decoder() : nullptr),
      data_(data.contiguous()),
      latents_(std::move(latents)),
      labels_(std::move(labels)),
      fused_(fused ? *fused : fused_decoder_of(*model_)),
      fused_rows_(fused_ ? rows_at_once(*model_->decoder()) : 1) {
  const ModelDescription& described = model_->description();
  std::vector<int64_t> shape = described.data_shape;
  shape.insert(shape.begin(), data_.dim() > 0 ? data_.size(0) : 0);
  const std::vector<int64_t> flat = {shape[0], described.num_values()};
  if (data_.dim() < 1 ||
      (data_.sizes() != at::IntArrayRef(shape) && data_.sizes() != at::IntArrayRef(flat)))
    throw argument_error("data must be [P, ...] of the model's shape");
  data_ = data_.view(shape);
  if (latents_.defined() && latents_.sizes() != at::IntArrayRef({shape[0], described.latent}))
    throw argument_error("latents must be [P, ", described.latent, "], one of each datum");
  if (labels_.defined() != described.labels.has_value())
    throw argument_error(labels_.defined() ? "labels are for a conditional model p(x | y)"
                                           : "a conditional model p(x | y) needs labels");
  if (labels_.defined() && (labels_.dim() < 1 || labels_.size(0) != data_.size(0) ||
                            labels_.sizes().slice(1) != at::IntArrayRef(described.labels->shape)))
    throw argument_error("labels must be [P, ...] of the model's shape of labels");
  traits_.tensors = data_.options();
  traits_.can_select = true;
  // Posteriors of all decoders but MLPs with Bernoulli pixels have kinks, tails and further modes.
  traits_.may_be_multimodal = by_hand_ == nullptr || !by_hand_->likelihood.is_bernoulli();
  traits_.is_replayable = by_hand_ != nullptr;
  traits_.forces_pay = fused_ ? has_cheap_kernel(at::kBFloat16) : model_->has_forces(at::kBFloat16);
  // In closed form: from the number of multiply-adds. Else 2 D outputs of half an evaluation each,
  // or 2 D evaluations.
  traits_.curvature_cost = by_hand_ != nullptr                   ? gauss_newton_cost(*by_hand_)
                           : dim() > kMostDense                  ? 2 * kDirections
                           : model_->description().has("output") ? dim()
                                                                 : 2 * dim();
  traits_.prior = normal_of_prior(*model_, traits_.tensors);
}

Evaluation DecoderPosterior::evaluate(const at::Tensor& z) const { return evaluated(z, forces_); }

const FusedDecoder* DecoderPosterior::fused_for(const at::Tensor& z,
                                                std::optional<at::ScalarType> forces) const {
  const bool fits = z.dim() != 3 || z.size(0) == data_.size(0);  // else data broadcast
  if (!fused_ || !fits || !is_plain(z.contiguous()) || !is_plain(data_)) return nullptr;
  if (!forces) return fused_.get();
  return *forces == at::kBFloat16 ? fused_->cheap().get() : nullptr;
}

at::Tensor DecoderPosterior::log_density(const at::Tensor& z) const {
  return evaluated(z, forces_, /*with_gradient=*/false).log_density;
}

bool DecoderPosterior::has_cheap_kernel(at::ScalarType dtype) const {
  return dtype == at::kBFloat16 && fused_ && fused_->cheap();
}

std::shared_ptr<const Target> DecoderPosterior::with_forces(at::ScalarType dtype) const {
  if (by_hand_ == nullptr && !has_cheap_kernel(dtype) && !model_->has_forces(dtype)) return nullptr;
  auto target = std::make_shared<DecoderPosterior>(*this);
  target->forces_ = dtype;
  return target;
}

Evaluation DecoderPosterior::evaluated(const at::Tensor& z, std::optional<at::ScalarType> forces,
                                       bool with_gradient) const {
  if (const FusedDecoder* fused = fused_for(z, forces))
    return in_blocks(z, data_.flatten(1), fused_rows_,
                     [&](const at::Tensor& part, const at::Tensor& x) {
                       const at::Tensor rows = part.contiguous();
                       return with_gradient ? fused->evaluate(rows, x)
                                            : Evaluation{fused->log_density(rows, x), {}};
                     });
  if (by_hand_ != nullptr)
    return in_blocks(z, data_.flatten(1).unsqueeze(1), kRowsByHand,
                     [&](const at::Tensor& part, const at::Tensor& x) {
                       if (!with_gradient) return Evaluation{log_joint(*by_hand_, part, x), {}};
                       const JointDensity joint = log_joint_with_grad(*by_hand_, part, x, forces);
                       return Evaluation{joint.value, joint.grad};
                     });
  const int64_t problems = z.size(0), particles = z.size(1), rows = problems * particles;
  const at::Tensor latents = z.reshape({rows, dim()});
  const at::Tensor owner =
      at::arange(problems, z.options().dtype(at::kLong)).repeat_interleave(particles);
  const LatentModel::Density all = density(latents, owner, model_->batch(), forces);
  return {all.value.view({problems, particles}), all.grad.view({problems, particles, dim()})};
}

LatentModel::Density DecoderPosterior::density(const at::Tensor& z, const at::Tensor& owner,
                                               int64_t batch,
                                               std::optional<at::ScalarType> forces) const {
  const int64_t rows = z.size(0);
  at::Tensor value = at::empty({rows}, z.options()), grad = at::empty_like(z);
  for (int64_t begin = 0; begin < rows; begin += batch) {
    const int64_t end = std::min(begin + batch, rows);
    const at::Tensor part = z.slice(0, begin, end), index = owner.slice(0, begin, end);
    LatentModel::Density found;
    stop_if_interrupted();
    try {
      const at::Tensor data = data_.index_select(0, index), labels = labels_of(index);
      found = forces ? model_->joint_with_forces(part, data, labels, *forces)
                     : model_->joint(part, data, labels);
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      // The libraries below report a lack of memory in many ways: after any error, fewer rows are
      // tried.
      if (end - begin > 1) {
        found = density(part, index, (end - begin + 1) / 2, forces);
      } else if (is_out_of_memory(error)) {
        throw std::bad_alloc();
      } else {
        const std::string text = error.what();
        throw data_error(model_->description().name,
                         ": log p(x, z) cannot be computed: ", text.substr(0, text.find('\n')));
      }
    }
    value.slice(0, begin, end).copy_(found.value);
    grad.slice(0, begin, end).copy_(found.grad);
  }
  return {value, grad};
}

at::Tensor DecoderPosterior::labels_of(const at::Tensor& index) const {
  return labels_.defined() ? labels_.index_select(0, index) : labels_;
}

std::shared_ptr<const Target> DecoderPosterior::select(const at::Tensor& index) const {
  auto part = std::make_shared<DecoderPosterior>(*this);
  part->data_ = data_.index_select(0, index);
  if (latents_.defined()) part->latents_ = latents_.index_select(0, index);
  part->labels_ = labels_of(index);
  return part;
}

at::Tensor DecoderPosterior::curvature(const at::Tensor& z) const {
  if (by_hand_ != nullptr)
    return gauss_newton(*by_hand_, z,
                        fused_ && is_plain(z.contiguous()) && has_bfloat16_products());
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

at::Tensor DecoderPosterior::jacobian(const at::Tensor& z, const at::Tensor& problem) const {
  const at::Tensor points = displaced(z.unsqueeze(0))[0];
  const bool is_fused = fused_for(points, std::nullopt) != nullptr;
  std::vector<at::Tensor> values;
  for (const at::Tensor& rows : points.split(is_fused ? fused_rows_ : model_->batch())) {
    stop_if_interrupted();
    values.push_back(is_fused
                         ? fused_->decode(rows)
                         : model_->output(rows, labels_of(problem.expand({rows.size(0)})))->value);
  }
  return derivatives(at::cat(values).unsqueeze(0))[0];
}

at::Tensor DecoderPosterior::fisher_weights(const at::Tensor& z, const at::Tensor& problems) const {
  if (fused_for(z, std::nullopt) == nullptr) return model_->output(z, labels_of(problems))->weight;
  return model_->decoder()->likelihood.fisher(fused_->decode(z));
}

at::Tensor DecoderPosterior::prior_precision(const at::Tensor& z) const {
  if (!model_->description().has("prior"))
    return at::eye(dim(), z.options()).repeat({z.size(0), 1, 1});
  return ModelPrior(model_, options(), z.size(0)).curvature(z);
}

at::Tensor DecoderPosterior::hessian(const at::Tensor& z) const {
  return symmetric(-derivatives(evaluated(displaced(z), std::nullopt).grad));
}

at::Tensor DecoderPosterior::low_rank(const at::Tensor& z) const {
  const at::Tensor prior = prior_precision(z);
  // Minus the Hessian of log p(x | z) times v [P,D], as a difference of gradients.
  const auto likelihood_times = [&](const at::Tensor& v) {
    const at::Tensor steps = kDifference * at::stack({v, -v}, 1);
    const at::Tensor slope =
        derivatives(evaluated(z.unsqueeze(1) + steps, std::nullopt).grad).squeeze(1);
    return -slope - at::matmul(prior, v.unsqueeze(2)).squeeze(2);
  };
  at::Generator rng = make_generator(0);  // any start will do, if all runs have the same one
  const auto unit = [](const at::Tensor& v) {
    return v / v.norm(2, {1}, /*keepdim=*/true).clamp_min(1e-30);
  };
  at::Tensor next = unit(at::randn({dim()}, rng, z.options()).expand_as(z));
  std::vector<at::Tensor> basis, images;
  for (int64_t i = 0; i < kDirections; ++i) {
    basis.push_back(next);
    images.push_back(likelihood_times(next));
    const at::Tensor directions = at::stack(basis, 1);  // [P,i+1,D]
    next = images.back();
    for (int twice = 0; twice < 2; ++twice)  // one pass leaves rounding errors that grow
      next =
          next - at::matmul(at::matmul(next.unsqueeze(1), directions.transpose(1, 2)), directions)
                     .squeeze(1);
    next = unit(next);
  }
  const at::Tensor directions = at::stack(basis, 1);
  const at::Tensor projected =
      symmetric(at::matmul(directions, at::stack(images, 1).transpose(1, 2)));
  const auto [values, vectors] = at::linalg_eigh(projected);
  const at::Tensor axes = at::matmul(vectors.transpose(1, 2), directions);
  return prior + at::matmul(axes.transpose(1, 2) * values.clamp_min(0).unsqueeze(1), axes);
}

std::optional<AffineMap> DecoderPosterior::amortised_base() const {
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

std::optional<at::Tensor> DecoderPosterior::exact_sample(int64_t k, at::Generator& /*rng*/) const {
  if (!latents_.defined()) return {};
  return latents_.unsqueeze(1).repeat({1, k, 1});
}

}  // namespace crais
