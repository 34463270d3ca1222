#include "bases/coupling_fit.h"

#include <cstdint>
#include <limits>

#include "util/interrupt.h"

namespace crais {
namespace {

// Draws settle from common ancestors: so many count as one.
constexpr double kDrawsPerIndependent = 4;
// Squared t-statistics: an effect counts from kSeen, and a driver is worth it if the effects that
// it adds exceed that by kClear together.
constexpr double kSeen = 6, kClear = 20;

/// The inverse of a positive definite matrix; not finite if it has none.
at::Tensor inverted(const at::Tensor& matrix) { return std::get<0>(at::linalg_inv_ex(matrix)); }

/// Squared t-statistics of the correlations of each column of `y` with each of `x`: [D,D].
at::Tensor squared_t_of_correlations(const at::Tensor& y, const at::Tensor& x) {
  const auto unit = [](const at::Tensor& columns) {
    const at::Tensor centred = columns - columns.mean(0);
    return centred / centred.norm(2, 0).clamp_min(1e-300);
  };
  const at::Tensor squares = at::matmul(unit(y).t(), unit(x)).square().clamp_max(0.999);
  return squares / (1 - squares) * (static_cast<double>(x.size(0)) / kDrawsPerIndependent);
}

/// How coordinates depend on each other in draws.
struct Dependence {
  at::Tensor effect;  // [D,D]: how clearly a row's scale or bend depends on a column, beyond kSeen
  at::Tensor degree;  // [D]: the sum of squared partial correlations with the others
};

/// `x` [N,D] are draws of mean 0 and variance 1. Where curvatures are known, scales depend on the
/// drivers that they show alone. What depends on drivers is none.
Dependence dependence(const at::Tensor& x, const Necks& necks) {
  const auto draws = static_cast<double>(x.size(0)), dim = static_cast<double>(x.size(1));
  const double shrinkage = (dim + 2) / (draws + dim + 2);
  const at::Tensor eye = at::eye(x.size(1), x.options());
  const at::Tensor covariance = (1 - shrinkage) * at::matmul(x.t(), x) / draws + shrinkage * eye;
  const at::Tensor precision = inverted(covariance), diagonal = precision.diagonal();
  // What the other coordinates do not explain of each.
  const at::Tensor residual = at::matmul(x, precision) / diagonal;
  const at::Tensor of_scales = squared_t_of_correlations((residual.abs() + 1e-6).log(), x) *
                               (necks.drivers | ~necks.is_concave.unsqueeze(1));
  const at::Tensor of_bends = squared_t_of_correlations(residual, x.square());
  return {(at::maximum(of_scales, of_bends) - kSeen).clamp_min(0) * (1 - eye) * ~necks.dependent,
          (precision.square() / at::outer(diagonal, diagonal)).sum(1)};
}

/// The coordinates on which most effects on the rest depend, chosen one after another, in addition
/// to those `known` [D]: [D] bool.
at::Tensor drivers(const at::Tensor& effect, const at::Tensor& known) {
  at::Tensor chosen = known.to(effect.options());
  double most = 0;
  while (true) {
    // Row j: the total with j as a further driver. A driver depends on nothing.
    const at::Tensor with = at::maximum(chosen, at::eye(effect.size(0), effect.options()));
    const at::Tensor totals = (at::matmul(1 - with, effect) * with).sum(1);
    const auto [total, best] = totals.max(0);
    if (!(total.item<double>() >= most + kClear)) return chosen > 0;
    most = total.item<double>();
    chosen = with[best.item<int64_t>()];
  }
}

/// (X^T W X)^-1 for features X [N,F] and weights W [N].
at::Tensor inverse_gram(const at::Tensor& features, const at::Tensor& weight) {
  constexpr double kRidge = 1e-12;
  const at::Tensor gram = at::matmul((features * weight.unsqueeze(1)).t(), features);
  return inverted(gram + at::diag(kRidge * gram.diagonal().clamp_min(1e-300)));
}

/// y [N] ~ N(features mean, exp(2 of_scale log_scale)) with weights of features that count.
class Regression {
 public:
  /// Weights that are not seen are left out, the least clear ones first: an error of a mean is
  /// large where the scale is small. The first feature of the scale, a constant, stays.
  Regression(const at::Tensor& features, const at::Tensor& of_scale, const at::Tensor& y)
      : features_(features), of_scale_(of_scale), y_(y) {
    at::Tensor means = at::arange(features.size(1)), scales = at::arange(of_scale.size(1));
    const at::Tensor one = at::ones_like(y);
    by_scale_ = inverse_gram(of_scale_, one);
    fit_mean(one);
    log_scale_ = regressed_on_scale((residual().abs() + 1e-6).log() - kMeanLog);
    iterate(kIterations);
    while (true) {
      const at::Tensor of_mean = clear(squared_t(mean_, by_mean_)),
                       of_scales =
                           clear(squared_t(log_scale_, 0.5 * by_scale_), /*keeps_first=*/true);
      if (of_mean.size(0) == means.size(0) && of_scales.size(0) == scales.size(0)) break;
      means = means.index_select(0, of_mean);
      scales = scales.index_select(0, of_scales);
      features_ = features.index_select(1, means);
      of_scale_ = of_scale.index_select(1, scales);
      by_scale_ = inverse_gram(of_scale_, one);
      log_scale_ = log_scale_.index_select(0, of_scales);
      iterate(kIterations / 2);
    }
    mean_ = at::zeros({features.size(1)}, y.options()).index_copy(0, means, mean_);
    log_scale_ = at::zeros({of_scale.size(1)}, y.options()).index_copy(0, scales, log_scale_);
  }

  const at::Tensor& mean() const { return mean_; }
  const at::Tensor& log_scale() const { return log_scale_; }

 private:
  static constexpr int kIterations = 12;
  static constexpr double kMeanLog = -0.635;  // of |N(0, 1)|
  static constexpr double kMostLog = 60;
  static constexpr double kMost = 16;  // of squared residuals: one draw must not decide

  /// Fisher's scoring.
  void iterate(int iterations) {
    for (int i = 0; i < iterations; ++i) {
      const at::Tensor precision =
          (-2 * at::mv(of_scale_, log_scale_)).clamp(-kMostLog, kMostLog).exp();
      fit_mean(precision);
      const at::Tensor squares = (residual().square() * precision).clamp_max(kMost);
      log_scale_ = log_scale_ + regressed_on_scale(0.5 * (squares - 1));
    }
  }
  void fit_mean(const at::Tensor& precision) {
    by_mean_ = inverse_gram(features_, precision);
    mean_ = at::mv(by_mean_, at::mv(features_.t(), precision * y_));
  }
  at::Tensor regressed_on_scale(const at::Tensor& x) const {
    return at::mv(by_scale_, at::mv(of_scale_.t(), x));
  }
  at::Tensor residual() const { return y_ - at::mv(features_, mean_); }

  static at::Tensor squared_t(const at::Tensor& weights, const at::Tensor& covariance) {
    return weights.square() / covariance.diagonal() / kDrawsPerIndependent;
  }
  /// The indices of all weights but half of those that are not seen: two that say the same are
  /// both unclear, and one of them stays.
  static at::Tensor clear(const at::Tensor& of_weights, bool keeps_first = false) {
    at::Tensor squares = of_weights.clone();
    if (keeps_first) squares[0] = std::numeric_limits<double>::infinity();
    const int64_t unseen = (squares < kSeen).sum().item<int64_t>();
    const at::Tensor order = squares.argsort();
    return std::get<0>(order.slice(0, (unseen + 1) / 2).sort());
  }

  at::Tensor features_, of_scale_, y_;
  at::Tensor mean_, log_scale_;    // weights
  at::Tensor by_mean_, by_scale_;  // inverse Gram matrices of their features
};

}  // namespace

std::shared_ptr<const Coupling> fit_coupling(const at::Tensor& z, const Necks& necks) {
  const at::Tensor loc = z.mean(0), scale = z.std(0);
  if (!(scale > 0).all().item<bool>() || !z.isfinite().all().item<bool>()) return {};
  const auto [effect, degree] = dependence((z - loc) / scale, necks);
  const at::Tensor drives = drivers(effect, necks.drivers);
  const at::Tensor depends =
      (necks.dependent | (at::mv(effect, drives.to(at::kDouble)) > 0)) & ~drives;
  const at::Tensor others = (~depends).nonzero().squeeze(1);
  at::Tensor dependent = depends.nonzero().squeeze(1);
  if (dependent.size(0) == 0) return {};
  // A common mean has many links, and comes before the effects that lie about it.
  dependent = dependent.index_select(
      0,
      std::get<1>(degree.index_select(0, dependent).sort(/*stable=*/true, 0, /*descending=*/true)));
  const int64_t num_others = others.size(0);
  const at::Tensor driving = drives.index_select(0, others).nonzero().squeeze(1);  // among others
  // Only drivers are centred: 0 is a natural mean of effects.
  const at::Tensor centre = (loc * drives).index_select(0, others),
                   unit = scale.index_select(0, others);
  const at::Tensor a = (z.index_select(1, others) - centre) / unit;
  const at::Tensor driver = a.index_select(1, driving);
  const at::Tensor one = at::ones({z.size(0), 1}, z.options());
  const at::Tensor features = at::cat({one, a, Coupling::bow(driver)}, 1);
  const at::Tensor of_scale = at::cat({one, driver, Coupling::knee(driver)}, 1);
  const at::Tensor bent = 1 + num_others + driving;  // bows of means, knees of scales
  const at::Tensor of_means = at::cat({at::arange(1 + num_others), bent});
  const at::Tensor of_scales = at::cat({at::zeros({1}, at::kLong), 1 + driving, bent});
  const int64_t num = dependent.size(0);
  const at::Tensor b = z.index_select(1, dependent);
  at::Tensor links = at::zeros({num, num}, z.options());
  at::Tensor mean = at::zeros({num, 1 + 2 * num_others}, z.options()),
             log_scale = at::zeros_like(mean);
  for (int64_t i = 0; i < num; ++i) {
    stop_if_interrupted();
    const at::Tensor unit_b = scale[dependent[i].item<int64_t>()];
    const Regression fit(at::cat({features, b.slice(1, 0, i) / unit_b}, 1), of_scale,
                         b.select(1, i) / unit_b);
    mean[i].index_copy_(0, of_means, fit.mean().slice(0, 0, of_means.size(0)) * unit_b);
    links[i].slice(0, 0, i).copy_(fit.mean().slice(0, of_means.size(0)));
    log_scale[i].index_copy_(0, of_scales, fit.log_scale());
    log_scale[i][0].add_(unit_b.log());
  }
  if (!mean.isfinite().all().item<bool>() || !log_scale.isfinite().all().item<bool>()) return {};
  return std::make_shared<Coupling>(dependent, others, centre, unit, links, mean, log_scale);
}

}  // namespace crais
