// Bases that need no fit: the target provides them.
#include "bases/base.h"
#include "util/error.h"

namespace crais {
namespace {

class Given : public BaseRule {
 public:
  std::optional<double> expected_cost(const Target& /*target*/) const override { return 0; }
};

/// The target's prior: N(0, I), or the normal with the mean and covariance of another prior.
class Prior : public Given {
 public:
  Base build(const Target& target, at::Generator& /*rng*/) const override {
    return Base(target.prior_base());
  }
};

/// An encoder's q(z | x), optionally with wider standard deviations.
class Encoder : public Given {
 public:
  explicit Encoder(double widening) : widening_(widening) {}

  Base build(const Target& target, at::Generator& /*rng*/) const override {
    const auto amortised = target.amortised_base();
    if (!amortised)
      throw argument_error("the `base` encoder: there is no encoder; use prior or laplace");
    return Base(amortised->widened(widening_));
  }

 private:
  double widening_;
};

const Enrol<BaseRegistry> kEnrolPriorBase("prior",
                                          "N(0, I), or the normal of an exported prior's moments",
                                          "prior", [](Spec&, const BaseOptions&) {
                                            return std::make_unique<Prior>();
                                          });

const Enrol<BaseRegistry> kEnrolEncoderBase("encoder[:W]",
                                            "the encoder's q(z|x), its standard deviations times W",
                                            "encoder", [](Spec& spec, const BaseOptions&) {
                                              return std::make_unique<Encoder>(
                                                  spec.number("widening", 0.1, 10.0, 1.0));
                                            });

}  // namespace
}  // namespace crais
