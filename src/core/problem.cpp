#include "core/problem.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/plain.h"
#include "core/rng.h"
#include "util/error.h"
#include "util/interrupt.h"

namespace crais {
namespace {

at::Tensor standard_normal_log_density(const at::Tensor& e) {
  const double log_scale = 0.5 * static_cast<double>(e.size(-1)) * std::log(2.0 * M_PI);
  return elementwise([log_scale](const auto& norm) { return -0.5 * norm - log_scale; },
                     squared_norm(e));
}

[[noreturn]] void throw_at(const at::Tensor& log_density, const at::Tensor& bad,
                           const std::string& trouble) {
  const at::Tensor first = bad.nonzero()[0].cpu();
  const int64_t p = first[0].item<int64_t>(), k = first[1].item<int64_t>();
  throw data_error("the density of problem ", p, " at starting particle ", k,
                   " (temperature 0) is ", log_density[p][k].item<double>(), trouble, "; ",
                   bad.sum().item<int64_t>(), " of ", bad.numel(), " particles start so");
}

at::Tensor joined(const std::vector<at::Tensor>& blocks) {
  return blocks.size() == 1 ? blocks.front() : at::cat(blocks, 1);
}

/// Keeps starts of zero density, and gives them no weight.
Particles with_weights(Particles particles, const Target& target) {
  const at::Tensor nothing = ~particles.log_gamma.isfinite();
  const at::Tensor bad_grad = ~(nothing | particles.grad_log_gamma.isfinite().all(-1));
  if (!(nothing | bad_grad).any().item<bool>()) return particles;
  checked_starts(particles.log_gamma, target);
  if (bad_grad.any().item<bool>())
    throw_at(particles.log_gamma, bad_grad, ", and its gradient is not finite");
  particles.log_gamma = particles.log_gamma.masked_fill(nothing, Problem::kNothing);
  particles.grad_log_gamma = particles.grad_log_gamma.masked_fill(nothing.unsqueeze(-1), 0);
  return particles;
}

}  // namespace

at::Tensor checked_starts(const at::Tensor& log_density, const Target& target) {
  constexpr double kFew = 1e-2;
  const at::Tensor undefined = log_density.isnan();
  const bool forgiven =
      target.traits().forgives_starts && undefined.to(at::kDouble).mean().item<double>() < kFew;
  at::Tensor checked =
      forgiven ? log_density.masked_fill(undefined, -std::numeric_limits<double>::infinity())
               : log_density;
  const at::Tensor nothing = checked.isneginf();
  const at::Tensor no_number = ~checked.isfinite() & ~nothing;
  if (no_number.any().item<bool>()) throw_at(checked, no_number, " (return -inf for zero)");
  if (nothing.all().item<bool>()) throw_at(checked, nothing, "");
  return checked;
}

Problem::Problem(std::shared_ptr<const Target> target, const AffineMap& base)
    : Problem(std::move(target), base, at::zeros_like(base.log_abs_det())) {}

Problem::Problem(std::shared_ptr<const Target> target, AffineMap base, const at::Tensor& log_center)
    : target_(std::move(target)),
      base_(std::move(base)),
      log_center_(log_center),
      log_scale_((base_.log_abs_det() - log_center).unsqueeze(1)) {
  TORCH_CHECK(target_->num_problems() == base_.num_problems() && target_->dim() == base_.dim(),
              "problem: the target has ", target_->num_problems(), " problems of dimension ",
              target_->dim(), ", its base ", base_.num_problems(), " of ", base_.dim());
}

at::Tensor Problem::draw(int64_t num_particles, at::Generator& rng) const {
  return fill_normal(at::empty({num_problems(), num_particles, dim()}, base_.options()), rng);
}

Particles Problem::start(int64_t num_particles, at::Generator& rng) const {
  return with_weights(evaluate(draw(num_particles, rng)), *target_);
}

Particles Problem::evaluate(const at::Tensor& e) const {
  constexpr int64_t kBlock = int64_t{1} << 21;  // numbers: a signal waits for one block
  std::vector<at::Tensor> densities, grads;
  for (const at::Tensor& part : e.split(std::max<int64_t>(1, kBlock / (e.size(0) * dim())), 1)) {
    stop_if_interrupted();
    const Evaluation evaluation = target_->evaluate(base_.to_z(part.contiguous()));
    densities.push_back(evaluation.log_density.to(at::kDouble) + log_scale_);
    grads.push_back(base_.pull_back(evaluation.grad));
  }
  return {e, standard_normal_log_density(e), joined(densities), joined(grads), at::Tensor()};
}

at::Tensor Problem::log_weight(const at::Tensor& e) const {
  stop_if_interrupted();
  return target_->log_density(base_.to_z(e)).to(at::kDouble) + base_.log_abs_det().unsqueeze(1) -
         standard_normal_log_density(e);
}

Problem Problem::select(const at::Tensor& index) const {
  return {target_->select(index), base_.select(index), log_center_.index_select(0, index)};
}

Problem Problem::select_whole(const at::Tensor& index) const {
  if (!partition_) return select(index);
  Problem selected = select(partition_->rows_of(index));
  selected.partition_ = partition_->select(index);
  return selected;
}

}  // namespace crais
