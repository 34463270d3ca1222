#include "core/coupling.h"

#include <cmath>
#include <utility>

namespace crais {
namespace {

// Of the change of a log-scale. A diverging move must not overflow.
constexpr double kMost = 20;

/// Half of the slope of a bow.
at::Tensor bounded(const at::Tensor& x) { return x.clamp(-4, 4); }

}  // namespace

Coupling::Coupling(at::Tensor dependent, at::Tensor others, at::Tensor loc, at::Tensor scale,
                   at::Tensor links, at::Tensor mean, at::Tensor log_scale, at::Tensor knees,
                   at::Tensor steps)
    : dependent_(std::move(dependent)),
      others_(std::move(others)),
      order_(at::cat({others_, dependent_}).argsort()),
      loc_(std::move(loc)),
      scale_(std::move(scale)),
      links_(std::move(links)),
      mean_(std::move(mean)),
      log_scale_(std::move(log_scale)),
      knees_(std::move(knees)),
      steps_(std::move(steps)) {
  const int64_t a = others_.size(0), b = dependent_.size(0);
  TORCH_CHECK(
      (links_.numel() == 0 || links_.sizes() == at::IntArrayRef({b, b})) &&
          mean_.sizes() == at::IntArrayRef({b, 1 + 2 * a}) && log_scale_.sizes() == mean_.sizes() &&
          knees_.sizes() == at::IntArrayRef({b, 1 + a}) && steps_.sizes() == at::IntArrayRef({b}),
      "coupling: the weights do not fit ", b, " coordinates that depend on ", a);
  const at::Tensor eye = at::eye(b, links_.options());
  if (links_.numel() > 0)
    mix_ = at::linalg_solve_triangular(eye - links_, eye, /*upper=*/false, /*left=*/true,
                                       /*unitriangular=*/true);
  at_loc_ = -knee(knees_.select(1, 0));
}

at::Tensor Coupling::bow(const at::Tensor& x) {
  const at::Tensor near = bounded(x);
  return near * (2 * x - near);
}

at::Tensor Coupling::knee(const at::Tensor& x) {
  return 0.5 * (at::softplus(-2 * x) - std::log(2.0));
}

at::Tensor Coupling::step(const at::Tensor& x) { return at::sigmoid(2 * x); }

at::Tensor Coupling::drives() const {
  const int64_t num = others_.size(0);
  const at::Tensor moves = (log_scale_ != 0).any(0);
  const at::Tensor drives =
      moves.slice(0, 1, 1 + num) | moves.slice(0, 1 + num) | (knees_.slice(1, 1) != 0).any(0);
  return at::zeros({dim()}, moves.options()).index_copy(0, others_, drives);
}

Coupling::Conditional Coupling::given(const at::Tensor& a) const {
  const at::Tensor x = (a - loc_) / scale_;
  const at::Tensor t = at::matmul(x, knees_.slice(1, 1).t()) + knees_.select(1, 0);
  const at::Tensor mean = mean_.select(1, 0) +
                          at::matmul(at::cat({x, bow(x)}, -1), mean_.slice(1, 1).t()) +
                          steps_ * step(t);
  const at::Tensor change =
      at::matmul(at::cat({x, knee(x)}, -1), log_scale_.slice(1, 1).t()) - knee(t) - at_loc_;
  return {x, t, mean, log_scale_.select(1, 0) + at_loc_ + change.clamp(-kMost, kMost),
          change.abs() >= kMost};
}

at::Tensor Coupling::joined(const at::Tensor& a, const at::Tensor& b) const {
  return at::cat({a, b}, -1).index_select(-1, order_);
}

at::Tensor Coupling::to_z(const at::Tensor& u) const {
  const at::Tensor a = u.index_select(-1, others_);
  const Conditional c = given(a);
  const at::Tensor apart = c.mean + c.log_scale.exp() * u.index_select(-1, dependent_);
  return joined(a, mix_.defined() ? at::matmul(apart, mix_.t()) : apart);
}

at::Tensor Coupling::to_u(const at::Tensor& z) const {
  const at::Tensor a = z.index_select(-1, others_), b = z.index_select(-1, dependent_);
  const Conditional c = given(a);
  const at::Tensor mean = mix_.defined() ? c.mean + at::matmul(b, links_.t()) : c.mean;
  return joined(a, (b - mean) * (-c.log_scale).exp());
}

at::Tensor Coupling::log_abs_det(const at::Tensor& u) const {
  return given(u.index_select(-1, others_)).log_scale.to(at::kDouble).sum(-1);
}

at::Tensor Coupling::pull_back(const at::Tensor& grad_z, const at::Tensor& u) const {
  const int64_t num = others_.size(0);
  const Conditional c = given(u.index_select(-1, others_));
  const at::Tensor u_b = u.index_select(-1, dependent_);
  at::Tensor by_mean = grad_z.index_select(-1, dependent_);
  if (mix_.defined()) by_mean = at::matmul(by_mean, mix_);
  const at::Tensor by_u = by_mean * c.log_scale.exp();
  const at::Tensor by_log_scale = (by_u * u_b + 1).masked_fill(c.is_bounded, 0);
  const at::Tensor pulled_mean = at::matmul(by_mean, mean_),
                   pulled_scale = at::matmul(by_log_scale, log_scale_);
  const at::Tensor at_step = step(c.t),
                   by_t = (1 - at_step) * (by_log_scale + 2 * at_step * steps_ * by_mean);
  const at::Tensor by_x =
      pulled_mean.slice(-1, 1, 1 + num) + 2 * bounded(c.x) * pulled_mean.slice(-1, 1 + num) +
      pulled_scale.slice(-1, 1, 1 + num) + (step(c.x) - 1) * pulled_scale.slice(-1, 1 + num) +
      at::matmul(by_t, knees_.slice(1, 1));
  return joined(grad_z.index_select(-1, others_) + by_x / scale_, by_u);
}

std::shared_ptr<const Bijection> Coupling::to(const at::TensorOptions& options) const {
  const at::TensorOptions index = options.dtype(at::kLong);
  return std::make_shared<Coupling>(dependent_.to(index), others_.to(index), loc_.to(options),
                                    scale_.to(options), links_.to(options), mean_.to(options),
                                    log_scale_.to(options), knees_.to(options), steps_.to(options));
}

}  // namespace crais
