// What the target brings: an encoder's q(z | x), its standard deviations widened at will.
#include "bases/base.h"
#include "util/error.h"

namespace crais {
namespace {

class Encoder : public BaseRule {
 public:
  explicit Encoder(double widening) : widening_(widening) {}

  Base build(const Target& target, at::Generator& /*rng*/) const override {
    const auto amortised = target.amortised_base();
    if (!amortised)
      throw argument_error("the `base` encoder: there is no encoder; use prior or laplace");
    return Base(amortised->widened(widening_));
  }
  std::optional<double> expected_cost(const Target& /*target*/) const override { return 0; }

 private:
  double widening_;
};

const Enrol<BaseRegistry> kEnrolEncoderBase(
    "encoder", {"encoder[:W]", "the encoder's q(z|x), its standard deviations times W", "encoder",
                [](Spec& spec) {
                  return std::make_unique<Encoder>(spec.number("widening", 0.1, 10.0, 1.0));
                }});

}  // namespace
}  // namespace crais
