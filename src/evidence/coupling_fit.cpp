#include <cstdint>
#include <limits>

#include "evidence/fits.h"
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
Dependence dependence(const at::Tensor& x, const Funnels& funnels) {
  const auto draws = static_cast<double>(x.size(0)), dim = static_cast<double>(x.size(1));
  const double shrinkage = (dim + 2) / (draws + dim + 2);
  const at::Tensor eye = at::eye(x.size(1), x.options());
  const at::Tensor covariance = (1 - shrinkage) * at::matmul(x.t(), x) / draws + shrinkage * eye;
  const at::Tensor precision = inverted(covariance), diagonal = precision.diagonal();
  // What the other coordinates do not explain of each.
  const at::Tensor residual = at::matmul(x, precision) / diagonal;
  const at::Tensor of_scales = squared_t_of_correlations((residual.abs() + 1e-6).log(), x) *
                               (funnels.drivers | ~funnels.is_concave.unsqueeze(1));
  const at::Tensor of_bends = squared_t_of_correlations(residual, x.square());
  return {(at::maximum(of_scales, of_bends) - kSeen).clamp_min(0) * (1 - eye) * ~funnels.dependent,
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

/// y [N] ~ N(features mean, exp(2 (of_scale log_scale + known))) with weights of features that
/// count, and `known` [N] without a weight.
class Regression {
 public:
  /// Weights that are not seen are left out, the least clear ones first: an error of a mean is
  /// large where the scale is small. The first feature of the scale, a constant, stays.
  Regression(const at::Tensor& features, const at::Tensor& of_scale, const at::Tensor& known,
             const at::Tensor& y)
      : features_(features), of_scale_(of_scale), known_(known), y_(y) {
    at::Tensor means = at::arange(features.size(1)), scales = at::arange(of_scale.size(1));
    const at::Tensor one = at::ones_like(y);
    by_scale_ = inverse_gram(of_scale_, one);
    fit_mean((-2 * known).clamp(-kMostLog, kMostLog).exp());
    log_scale_ = regressed_on_scale((residual().abs() + 1e-6).log() - kMeanLog - known);
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
    const at::Tensor log_scale = at::mv(of_scale_, log_scale_) + known_;
    log_likelihood_ =
        -(log_scale + 0.5 * (residual() * (-log_scale).exp()).square().clamp_max(kMost))
             .sum()
             .item<double>();
    mean_ = at::zeros({features.size(1)}, y.options()).index_copy(0, means, mean_);
    log_scale_ = at::zeros({of_scale.size(1)}, y.options()).index_copy(0, scales, log_scale_);
  }

  const at::Tensor& mean() const { return mean_; }
  const at::Tensor& log_scale() const { return log_scale_; }
  double log_likelihood() const { return log_likelihood_; }

 private:
  static constexpr int kIterations = 12;
  static constexpr double kMeanLog = -0.635;  // of |N(0, 1)|
  static constexpr double kMostLog = 60;
  static constexpr double kMost = 16;  // of squared residuals: one draw must not decide

  /// Fisher's scoring, until nothing moves.
  void iterate(int iterations) {
    for (int i = 0; i < iterations; ++i) {
      const at::Tensor precision =
          (-2 * (at::mv(of_scale_, log_scale_) + known_)).clamp(-kMostLog, kMostLog).exp();
      fit_mean(precision);
      const at::Tensor squares = (residual().square() * precision).clamp_max(kMost);
      const at::Tensor step = regressed_on_scale(0.5 * (squares - 1));
      log_scale_ = log_scale_ + step;
      if ((step.abs().max() < 0.01).item<bool>()) return;  // nats
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

  at::Tensor features_, of_scale_, known_, y_;
  at::Tensor mean_, log_scale_;    // weights
  at::Tensor by_mean_, by_scale_;  // inverse Gram matrices of their features
  double log_likelihood_ = 0;
};

/// The weights of a coupling, row by row. A scale bends where drivers are 0, or at a knee that is
/// known, across which the mean may step: the better of two regressions says.
class Weights {
 public:
  /// `x` [N,A] are draws of the others in their units, `driving` [S] the columns of drivers, and
  /// `knees` [2,B,1+A] weights of 1 and x, 0 where no knee is known (Funnels::knees).
  Weights(const at::Tensor& x, const at::Tensor& driving, const at::Tensor& knees)
      : driving_(driving),
        num_others_(x.size(1)),
        linear_(at::cat({at::ones({x.size(0), 1}, x.options()), x}, 1)),
        driver_(x.index_select(1, driving)),
        known_(knees),
        links_(at::zeros({knees.size(1), knees.size(1)}, x.options())),
        mean_(at::zeros({knees.size(1), 1 + 2 * num_others_}, x.options())),
        log_scale_(at::zeros_like(mean_)),
        knees_(at::zeros_like(knees[0])),
        steps_(at::zeros_like(log_scale_.select(1, 0))) {}

  /// Row i by draws y [N] of its coordinate and `earlier` [N,i] of those before, in its unit.
  void fit(int64_t i, const at::Tensor& y, const at::Tensor& earlier, const at::Tensor& unit) {
    const at::Tensor one = linear_.slice(1, 0, 1);
    const Regression by_drivers(at::cat({linear_, Coupling::bow(driver_), earlier}, 1),
                                at::cat({one, driver_, Coupling::knee(driver_)}, 1),
                                at::zeros_like(y), y);
    if (!known_[0][i].any().item<bool>() || !fit_at_knee(i, y, earlier, unit, by_drivers)) {
      const at::Tensor bows = 1 + num_others_ + driving_, constant = at::zeros({1}, at::kLong);
      const int64_t count = 1 + num_others_ + bows.size(0);
      mean_[i].index_copy_(0, at::cat({at::arange(1 + num_others_), bows}),
                           by_drivers.mean().slice(0, 0, count) * unit);
      links_[i].slice(0, 0, i).copy_(by_drivers.mean().slice(0, count));
      log_scale_[i].index_copy_(0, at::cat({constant, 1 + driving_, bows}), by_drivers.log_scale());
    }
    log_scale_[i][0].add_(unit.log());
  }

  bool are_finite() const {
    return mean_.isfinite().all().item<bool>() && log_scale_.isfinite().all().item<bool>() &&
           steps_.isfinite().all().item<bool>();
  }
  const at::Tensor& links() const { return links_; }
  const at::Tensor& mean() const { return mean_; }
  const at::Tensor& log_scale() const { return log_scale_; }
  const at::Tensor& knees() const { return knees_; }
  const at::Tensor& steps() const { return steps_; }

 private:
  // Nats by which more weights, and what draws alone say, must be better: known knees hold where no
  // draws are.
  static constexpr double kBetter = 0.5 * kDrawsPerIndependent * kClear;

  /// Row i with its known knee, unless `by_drivers` is clearly better: then false.
  bool fit_at_knee(int64_t i, const at::Tensor& y, const at::Tensor& earlier,
                   const at::Tensor& unit, const Regression& by_drivers) {
    const int64_t linear = linear_.size(1);
    const at::Tensor t = at::mv(linear_, known_[0][i]).unsqueeze(1);
    const at::Tensor of_scale = at::cat({linear_.slice(1, 0, 1), driver_}, 1),
                     known = at::mv(linear_, known_[1][i]) - Coupling::knee(t).squeeze(1);
    const Regression found(at::cat({linear_, Coupling::step(t), earlier}, 1), of_scale, known, y);
    if (found.log_likelihood() + kBetter < by_drivers.log_likelihood()) return false;
    knees_[i].copy_(known_[0][i]);
    log_scale_[i].slice(0, 0, linear).copy_(known_[1][i]);
    log_scale_[i].index_add_(0, at::cat({at::zeros({1}, at::kLong), 1 + driving_}),
                             found.log_scale());
    mean_[i].slice(0, 0, linear).copy_(found.mean().slice(0, 0, linear) * unit);
    steps_[i].copy_(found.mean()[linear] * unit);
    links_[i].slice(0, 0, i).copy_(found.mean().slice(0, linear + 1));
    return true;
  }

  at::Tensor driving_;
  int64_t num_others_;
  at::Tensor linear_, driver_, known_;
  at::Tensor links_, mean_, log_scale_, knees_, steps_;
};

}  // namespace

std::shared_ptr<const Coupling> fit_coupling(const at::Tensor& z, const Funnels& funnels) {
  const at::Tensor loc = z.mean(0), scale = z.std(0);
  if (!(scale > 0).all().item<bool>() || !z.isfinite().all().item<bool>()) return {};
  const auto [effect, degree] = dependence((z - loc) / scale, funnels);
  const at::Tensor drives = drivers(effect, funnels.drivers);
  const at::Tensor depends =
      (funnels.dependent | (at::mv(effect, drives.to(at::kDouble)) > 0)) & ~drives;
  const at::Tensor others = (~depends).nonzero().squeeze(1);
  at::Tensor dependent = depends.nonzero().squeeze(1);
  if (dependent.size(0) == 0) return {};
  // A common mean has many links, and comes before the effects that lie about it.
  dependent = dependent.index_select(
      0,
      std::get<1>(degree.index_select(0, dependent).sort(/*stable=*/true, 0, /*descending=*/true)));
  // Only drivers are centred: 0 is a natural mean of effects.
  const at::Tensor centre = (loc * drives).index_select(0, others),
                   unit = scale.index_select(0, others);
  const at::Tensor known = funnels.knees.index_select(1, dependent);
  const at::Tensor by_others = known.slice(2, 1).index_select(2, others);
  const at::Tensor knees = at::cat(
      {known.slice(2, 0, 1) + at::matmul(by_others, centre).unsqueeze(2), by_others * unit}, 2);
  Weights weights((z.index_select(1, others) - centre) / unit,
                  drives.index_select(0, others).nonzero().squeeze(1), knees);
  const at::Tensor b = z.index_select(1, dependent);
  for (int64_t i = 0; i < dependent.size(0); ++i) {
    stop_if_interrupted();
    const at::Tensor unit_b = scale[dependent[i].item<int64_t>()];
    weights.fit(i, b.select(1, i) / unit_b, b.slice(1, 0, i) / unit_b, unit_b);
  }
  if (!weights.are_finite()) return {};
  return std::make_shared<Coupling>(dependent, others, centre, unit, weights.links(),
                                    weights.mean(), weights.log_scale(), weights.knees(),
                                    weights.steps());
}

}  // namespace crais
