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
                   at::Tensor turns)
    : dependent_(std::move(dependent)),
      others_(std::move(others)),
      order_(at::cat({others_, dependent_}).argsort()),
      loc_(std::move(loc)),
      scale_(std::move(scale)),
      links_(std::move(links)),
      mean_(std::move(mean)),
      log_scale_(std::move(log_scale)),
      knees_(std::move(knees)),
      turns_(std::move(turns)) {
  const int64_t a = others_.size(0), b = dependent_.size(0);
  TORCH_CHECK(links_.sizes() == at::IntArrayRef({b, b}) &&
                  mean_.sizes() == at::IntArrayRef({b, 1 + 2 * a}) &&
                  log_scale_.sizes() == mean_.sizes() &&
                  knees_.sizes() == at::IntArrayRef({b, 1 + a}) &&
                  turns_.sizes() == at::IntArrayRef({2, b, 1 + a + b}),
              "coupling: the weights do not fit ", b, " coordinates that depend on ", a);
  const at::Tensor turning = turns_.slice(2, 1 + a);
  means_turn_ = turns_.any().item<bool>();
  links_turn_ = turning.any().item<bool>();
  if (links_turn_) {
    by_row_ = at::cat({links_.unsqueeze(0), turning}).transpose(0, 1).contiguous();
  } else {
    const at::Tensor eye = at::eye(b, links_.options());
    mix_ = at::linalg_solve_triangular(eye - links_, eye, /*upper=*/false, /*left=*/true,
                                       /*unitriangular=*/true);
  }
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

at::Tensor Coupling::bump(const at::Tensor& x) { return 1 / x.clamp(-40, 40).cosh(); }

at::Tensor Coupling::drives() const {
  const int64_t num = others_.size(0);
  const at::Tensor moves = (log_scale_ != 0).any(0);
  return at::zeros({dim()}, moves.options())
      .index_copy(
          0, others_,
          moves.slice(0, 1, 1 + num) | moves.slice(0, 1 + num) | (knees_.slice(1, 1) != 0).any(0));
}

Coupling::Conditional Coupling::given(const at::Tensor& a) const {
  const int64_t num = others_.size(0);
  const at::Tensor x = (a - loc_) / scale_;
  const at::Tensor t = at::matmul(x, knees_.slice(1, 1).t()) + knees_.select(1, 0);
  std::vector<at::Tensor> turned;
  if (means_turn_) turned = {step(t), bump(t)};
  at::Tensor mean =
      mean_.select(1, 0) + at::matmul(at::cat({x, bow(x)}, -1), mean_.slice(1, 1).t());
  for (size_t i = 0; i < turned.size(); ++i) {
    const at::Tensor turns = turns_[static_cast<int64_t>(i)];
    mean = mean + turned[i] * (turns.select(1, 0) + at::matmul(x, turns.slice(1, 1, 1 + num).t()));
  }
  const at::Tensor change =
      at::matmul(at::cat({x, knee(x)}, -1), log_scale_.slice(1, 1).t()) - knee(t) - at_loc_;
  return {x,
          t,
          turned,
          mean,
          log_scale_.select(1, 0) + at_loc_ + change.clamp(-kMost, kMost),
          change.abs() >= kMost};
}

at::Tensor Coupling::linked(const at::Tensor& apart, const std::vector<at::Tensor>& turned) const {
  if (!links_turn_) return at::matmul(apart, mix_.t());
  const int64_t count = dependent_.size(0);
  at::Tensor b = apart.reshape({-1, count}).t().contiguous();  // [b,N]
  const at::Tensor by = at::stack(turned).reshape({2, -1, count}).permute({2, 0, 1}).contiguous();
  for (int64_t i = 1; i < count; ++i) {
    const at::Tensor sums = at::mm(by_row_[i].slice(1, 0, i), b.slice(0, 0, i));  // [3,N]
    b[i].add_(sums[0]).add_((sums.slice(0, 1) * by[i]).sum(0));
  }
  return b.t().reshape(apart.sizes());
}

at::Tensor Coupling::pulled_through_links(const at::Tensor& grad,
                                          const std::vector<at::Tensor>& turned) const {
  if (!links_turn_) return at::matmul(grad, mix_);
  const int64_t count = dependent_.size(0);
  at::Tensor pulled = grad.reshape({-1, count}).t().contiguous();
  const at::Tensor by = at::stack(turned).reshape({2, -1, count}).permute({2, 0, 1}).contiguous();
  for (int64_t i = count - 1; i > 0; --i) {
    const at::Tensor of_row = pulled.slice(0, i, i + 1);
    pulled.slice(0, 0, i).addmm_(by_row_[i].slice(1, 0, i).t(), at::cat({of_row, of_row * by[i]}));
  }
  return pulled.t().reshape(grad.sizes());
}

at::Tensor Coupling::joined(const at::Tensor& a, const at::Tensor& b) const {
  return at::cat({a, b}, -1).index_select(-1, order_);
}

at::Tensor Coupling::to_z(const at::Tensor& u) const {
  const at::Tensor a = u.index_select(-1, others_);
  const Conditional c = given(a);
  return joined(a, linked(c.mean + c.log_scale.exp() * u.index_select(-1, dependent_), c.turned));
}

at::Tensor Coupling::to_u(const at::Tensor& z) const {
  const int64_t num = others_.size(0);
  const at::Tensor a = z.index_select(-1, others_), b = z.index_select(-1, dependent_);
  const Conditional c = given(a);
  at::Tensor mean = c.mean + at::matmul(b, links_.t());
  for (size_t i = 0; links_turn_ && i < c.turned.size(); ++i)
    mean =
        mean + c.turned[i] * at::matmul(b, turns_[static_cast<int64_t>(i)].slice(1, 1 + num).t());
  return joined(a, (b - mean) * (-c.log_scale).exp());
}

at::Tensor Coupling::log_abs_det(const at::Tensor& u) const {
  return given(u.index_select(-1, others_)).log_scale.to(at::kDouble).sum(-1);
}

at::Tensor Coupling::pull_back(const at::Tensor& grad_z, const at::Tensor& u) const {
  const int64_t num = others_.size(0);
  const Conditional c = given(u.index_select(-1, others_));
  const at::Tensor u_b = u.index_select(-1, dependent_);
  const at::Tensor by_mean = pulled_through_links(grad_z.index_select(-1, dependent_), c.turned);
  const at::Tensor scale = c.log_scale.exp(), by_u = by_mean * scale;
  const at::Tensor by_log_scale = (by_u * u_b + 1).masked_fill(c.is_bounded, 0);
  const at::Tensor pulled_mean = at::matmul(by_mean, mean_),
                   pulled_scale = at::matmul(by_log_scale, log_scale_);
  at::Tensor seen = c.x;  // what turns: x, and b if links do
  if (links_turn_) seen = at::cat({c.x, linked(c.mean + scale * u_b, c.turned)}, -1);
  const at::Tensor at_step = step(c.t);
  at::Tensor by_t = (1 - at_step) * by_log_scale;
  at::Tensor by_x =
      pulled_mean.slice(-1, 1, 1 + num) + 2 * bounded(c.x) * pulled_mean.slice(-1, 1 + num) +
      pulled_scale.slice(-1, 1, 1 + num) + (step(c.x) - 1) * pulled_scale.slice(-1, 1 + num);
  for (size_t i = 0; i < c.turned.size(); ++i) {
    const at::Tensor& turned = c.turned[i];
    const at::Tensor slope = i == 0 ? 2 * at_step * (1 - at_step) : turned * (1 - 2 * at_step);
    const at::Tensor turns = turns_[static_cast<int64_t>(i)],
                     weights = turns.slice(1, 1, 1 + seen.size(-1));
    by_t = by_t + by_mean * slope * (turns.select(1, 0) + at::matmul(seen, weights.t()));
    by_x = by_x + at::matmul(by_mean * turned, turns.slice(1, 1, 1 + num));
  }
  by_x = by_x + at::matmul(by_t, knees_.slice(1, 1));
  return joined(grad_z.index_select(-1, others_) + by_x / scale_, by_u);
}

std::shared_ptr<const Bijection> Coupling::to(const at::TensorOptions& options) const {
  const at::TensorOptions index = options.dtype(at::kLong);
  return std::make_shared<Coupling>(dependent_.to(index), others_.to(index), loc_.to(options),
                                    scale_.to(options), links_.to(options), mean_.to(options),
                                    log_scale_.to(options), knees_.to(options), turns_.to(options));
}

}  // namespace crais
