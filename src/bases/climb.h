// Newton's method on log gamma, for many problems at once: the start of fits by modes.
//
// Damped Newton steps d = H^-1 g on log gamma. A curvature costs as much as tens of evaluations, so
// several steps share one (Shamanskii's method): the more expensive the curvature, the more steps.
// One evaluation follows each step. A step that does not climb is undone and halved. The last
// curvature is the precision of the fit.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "bases/base.h"
#include "bases/normal_mixture.h"
#include "util/interrupt.h"

namespace crais {

constexpr int64_t kUsualRounds = 6;   // until a climb arrives
constexpr int64_t kMostRounds = 12;   // of Newton's method
constexpr double kLeastShare = 1e-3;  // of the mass: neighbours cover lighter modes

/// The number of steps that share one curvature: an eighth of its cost in evaluations.
int64_t steps_a_round(const Target& target);

/// One climbing point of each problem.
class Climb {
 public:
  Climb(const Target& target, at::Tensor z)
      : target_(target.shared()), z_(std::move(z)), now_(target.evaluate(z_.unsqueeze(1))) {
    length_ = at::ones({z_.size(0), 1}, z_.options());
  }

  /// Continues with only the problems at `index` [Q].
  void narrow(const at::Tensor& index) {
    target_ = target_->select(index);
    z_ = z_.index_select(0, index);
    now_ = {now_.log_density.index_select(0, index), now_.grad.index_select(0, index)};
    length_ = length_.index_select(0, index);
  }

  const at::Tensor& z() const { return z_; }
  Factored curvature() const { return factor_precision(target_->curvature(z_).to(at::kDouble)); }
  at::Tensor log_density() const { return now_.log_density.squeeze(1).to(at::kDouble); }
  at::Tensor not_finite() const {
    return ~(now_.log_density.isfinite().squeeze(1) & now_.grad.isfinite().flatten(1).all(-1));
  }

  /// The square of Newton's step, in standard deviations of the fit: [P], twice the nats that it
  /// promises.
  at::Tensor decrement(const at::Tensor& covariance_root) const {
    const at::Tensor gradient = now_.grad.to(at::kDouble).transpose(1, 2);
    return at::matmul(covariance_root.transpose(1, 2), gradient).square().sum({1, 2});
  }

  /// True, [P] bool, if no step climbs any more, however short: rounding hides the differences.
  at::Tensor is_stuck() const { return length_.flatten() < 1e-3; }

  /// [P] bool: the gradient is exactly zero, and at a nudge from here it is not what the curvature
  /// says. Autograd is wrong just at a kink, where a climb would stay. Cost: added, an evaluation
  /// of each problem whose gradient is zero.
  at::Tensor is_at_kink(const at::Tensor& covariance_root, Cost& cost) const {
    constexpr double kNudge = 1e-3;  // standard deviations of the fit
    at::Tensor is_flat = (now_.grad == 0).flatten(1).all(-1);
    const at::Tensor rows = at::nonzero(is_flat).flatten();
    if (rows.numel() == 0 || !target_->traits().can_select) return at::zeros_like(is_flat);
    cost += Cost::with_gradient(rows.numel());
    const at::Tensor root = covariance_root.index_select(0, rows);
    const at::Tensor nudged =
        z_.index_select(0, rows) + (kNudge * root.sum(2)).to(z_.scalar_type());
    const Evaluation there = target_->select(rows)->evaluate(nudged.unsqueeze(1));
    const at::Tensor whitened = at::matmul(there.grad.to(at::kDouble), root).squeeze(1);
    return is_flat.index_put({rows}, ((whitened + kNudge).abs() > kNudge).any(-1));
  }

  /// Makes `count` steps that share one curvature.
  void steps(const at::Tensor& covariance_root, int64_t count, bool by_degrees = false) {
    for (int64_t i = 0; i < count; ++i) step(covariance_root, by_degrees);
  }

 private:
  void step(const at::Tensor& covariance_root, bool by_degrees) {
    stop_if_interrupted();
    const at::Tensor gradient = now_.grad.to(at::kDouble).transpose(1, 2);
    at::Tensor newton =
        at::matmul(covariance_root, at::matmul(covariance_root.transpose(1, 2), gradient))
            .squeeze(2)
            .to(z_.scalar_type());
    // From a flat tail a step may be any number too long, and far out ODEs may be stiff.
    if (by_degrees)
      newton *= ((4 + z_.abs().amax(1, true)) / newton.abs().amax(1, true)).clamp_max(1);
    const at::Tensor trial = z_ + length_ * newton;
    const Evaluation tried = target_->evaluate(trial.unsqueeze(1));
    const at::Tensor climbs = (tried.log_density > now_.log_density) &
                              tried.grad.isfinite().flatten(1).all(-1, /*keepdim=*/true);
    z_ = at::where(climbs, trial, z_);
    now_ = {at::where(climbs, tried.log_density, now_.log_density),
            at::where(climbs.unsqueeze(2), tried.grad, now_.grad)};
    length_ = at::where(climbs, (1.5 * length_).clamp_max(1.0), 0.5 * length_);
  }

  std::shared_ptr<const Target> target_;  // the caller's target, until it is narrowed
  at::Tensor z_;                          // [P,D]
  Evaluation now_;                        // [P,1], [P,1,D]
  at::Tensor length_;                     // [P,1], of a Newton step
};

/// `values` [Q,...] as the rows `index` [Q] of `count`; the others are `otherwise`.
at::Tensor spread(const at::Tensor& values, int64_t count, const at::Tensor& index,
                  double otherwise);

/// The end of a climb.
struct Mode {
  at::Tensor z;          // [P,D]
  at::Tensor root;       // [P,D,D], root of the covariance
  at::Tensor before;     // [P,D,D]: `root` one round earlier, perhaps across a kink
  at::Tensor log_mass;   // [P] float64: log gamma + log det root, log mass up to a constant
  at::Tensor failed;     // [P] bool
  at::Tensor decrement;  // [P] float64: see Climb

  /// These ends at `index` of `count` climbs, of which the others have failed.
  Mode among(int64_t count, const at::Tensor& index) const {
    return {spread(z, count, index, 0),      spread(root, count, index, 1),
            spread(before, count, index, 1), spread(log_mass, count, index, 0),
            spread(failed, count, index, 1), spread(decrement, count, index, 0)};
  }

  /// Sets the problems at `place` [Q] to the state of `climb`.
  void put(const at::Tensor& place, const Climb& climb, const at::Tensor& covariance_root,
           const at::Tensor& earlier_root, const at::Tensor& has_failed) {
    const at::Tensor narrow_root = covariance_root.to(root.options());
    const at::Tensor log_det = narrow_root.diagonal(0, 1, 2).to(at::kDouble).log().sum(-1);
    z.index_copy_(0, place, climb.z());
    root.index_copy_(0, place, narrow_root);
    before.index_copy_(0, place, earlier_root.to(root.options()));
    log_mass.index_copy_(0, place, climb.log_density() + log_det);
    decrement.index_copy_(0, place, climb.decrement(covariance_root));
    failed.index_copy_(0, place, has_failed | ~narrow_root.isfinite().flatten(1).all(-1));
  }
};

/// "laplace", or "laplace:1.1,rounds=2" with the options that differ from their defaults.
std::string specification(const std::string& rule, const ModeOptions& options);

/// Climbs from `start` [P,D]. A problem stops, and costs nothing more, once it has failed or has
/// arrived: the square of Newton's step, in standard deviations, is then below `until`. By degrees,
/// no step is much longer than a point is far from 0, and what has not arrived has an infinite
/// decrement. Adds its cost to `cost`.
Mode climb(const Target& target, const at::Tensor& start, int64_t rounds, double until, Cost& cost,
           bool by_degrees = false);

/// `known`, whose shares are log masses in nats, and a normal at each further mode of one problem
/// to which climbs from `start` [S,D] lead: the heaviest first, while one is more than `far` nats
/// above all normals so far, and not light. `until`: see climb(). The shares that are returned sum
/// to 1. Cost: added, that of the climbs.
NormalMixture with_modes(const Target& one, NormalMixture known, const at::Tensor& start,
                         double far, double until, Cost& cost);

/// The squared distance below which two climbs have ended at the same mode, for `dim` dimensions.
double farthest_of_one_mode(int64_t dim);

}  // namespace crais
