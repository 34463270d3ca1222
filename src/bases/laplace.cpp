// The Laplace approximation: a Gaussian at the mode, whose precision is the curvature at the mode.
//                                                      [Tierney & Kadane 1986; MacKay 2003, ch. 27]
#include <memory>

#include "bases/climb.h"

namespace crais {
namespace {

class Laplace : public BaseRule {
 public:
  explicit Laplace(const ModeOptions& options) : options_(options) {
    name = specification("laplace", options);
  }

  Base build(const Target& target, at::Generator& /*rng*/) const override {
    const AffineMap guess = first_guess(target);
    Cost cost;
    const Mode mode = climb(target, guess.loc(), rounds_of(target), /*until=*/0, cost);
    const at::Tensor failed = mode.failed | ~mode.log_mass.isfinite();
    return {chosen(~failed, mode.z, options_.widening * mode.root, guess), failed, cost};
  }

  std::optional<double> expected_cost(const Target& target) const override {
    return static_cast<double>(1 + rounds_of(target) *
                                       (target.curvature_cost() + steps_a_round(target)));
  }

 private:
  int64_t rounds_of(const Target& target) const {
    return options_.rounds > 0 ? options_.rounds : target.amortised_base() ? 2 : 8;
  }

  ModeOptions options_;
};

const Enrol<BaseRegistry> kEnrolLaplaceBase(
    "laplace[:W]",
    "a Gaussian at the mode with the curvature there, its standard deviations times W (rounds=N "
    "of Newton's method: 2 from an encoder, else 8)",
    "laplace", [](Spec& spec, const BaseOptions&) {
      return make_laplace(
          {spec.number("widening", 0.1, 10.0, 1.0), spec.integer("rounds", 1, 1000, 0)});
    });

}  // namespace

std::unique_ptr<BaseRule> make_laplace(const ModeOptions& options) {
  return std::make_unique<Laplace>(options);
}

}  // namespace crais
