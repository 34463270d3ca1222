// The Laplace approximation: a Gaussian at the mode, with the curvature there as its precision.
//                                                      [Tierney & Kadane 1986; MacKay 2003, ch. 27]
//
// Damped Newton steps d = H^-1 g on log gamma. A curvature costs as much as tens of evaluations, so
// each serves a round of several steps (Shamanskii's method), each followed by one evaluation. A
// step that does not climb is halved, and taken back. The last curvature is the base's precision.
#include <utility>

#include "bases/base.h"

namespace crais {
namespace {

class Laplace : public BaseRule {
 public:
  Laplace(double widening, int64_t rounds) : widening_(widening), rounds_(rounds) {}

  Base build(const Target& target, at::Generator& /*rng*/) const override {
    const AffineMap start = first_guess(target);
    const int64_t rounds = rounds_ > 0 ? rounds_ : target.amortised_base() ? 2 : 8;
    Climb climb(target, start.loc());
    at::Tensor failed = climb.not_finite();
    Factored factored;
    for (int64_t round = 0; round < rounds; ++round) {
      factored = factor_precision(target.curvature(climb.z()).to(at::kDouble));
      failed = failed | factored.failed;
      for (int64_t i = 0; i < kStepsARound; ++i) climb.step(factored.covariance_root);
    }
    const at::Tensor root = factored.covariance_root.to(start.options());
    failed = failed | ~root.isfinite().flatten(1).all(-1);
    const AffineMap fitted(at::where(failed.unsqueeze(1), start.loc(), climb.z()),
                           at::where(failed.view({-1, 1, 1}), start.matrix(), widening_ * root));
    const int64_t spent = target.num_problems() *
                          (1 + rounds * (target.curvature_cost() + kStepsARound));
    return {fitted, failed, Cost{spent, spent}};
  }

 private:
  static constexpr int64_t kStepsARound = 4;

  /// One point of each problem on its way up.
  class Climb {
   public:
    Climb(const Target& target, at::Tensor z)
        : target_(target), z_(std::move(z)), now_(target.evaluate(z_.unsqueeze(1))) {
      length_ = at::ones({z_.size(0), 1}, z_.options());
    }

    const at::Tensor& z() const { return z_; }
    at::Tensor not_finite() const {
      return ~(now_.log_density.isfinite().squeeze(1) & now_.grad.isfinite().flatten(1).all(-1));
    }

    void step(const at::Tensor& covariance_root) {
      const at::Tensor gradient = now_.grad.to(at::kDouble).transpose(1, 2);
      const at::Tensor newton =
          at::matmul(covariance_root, at::matmul(covariance_root.transpose(1, 2), gradient))
              .squeeze(2)
              .to(z_.scalar_type());
      const at::Tensor trial = z_ + length_ * newton;
      const Evaluation there = target_.evaluate(trial.unsqueeze(1));
      const at::Tensor climbs = (there.log_density > now_.log_density) &
                                there.grad.isfinite().flatten(1).all(-1, /*keepdim=*/true);
      z_ = at::where(climbs, trial, z_);
      now_ = {at::where(climbs, there.log_density, now_.log_density),
              at::where(climbs.unsqueeze(2), there.grad, now_.grad)};
      length_ = at::where(climbs, (1.5 * length_).clamp_max(1.0), 0.5 * length_);
    }

   private:
    const Target& target_;
    at::Tensor z_;       // [P,D]
    Evaluation now_;     // [P,1], [P,1,D]
    at::Tensor length_;  // [P,1], of a Newton step
  };

  double widening_;
  int64_t rounds_;
};

const Enrol<BaseRegistry> kEnrol(
    "laplace",
    {"laplace[:W]",
     "a Gaussian at the mode with the curvature there (rounds=N of Newton's method: 2 from an "
     "encoder, else 8), its standard deviations times W",
     "laplace", [](Spec& spec) {
       const double widening = spec.number("widening", 0.1, 10.0, 1.0);
       return std::make_unique<Laplace>(widening, spec.integer("rounds", 1, 1000, 0));
     }});

}  // namespace
}  // namespace crais
