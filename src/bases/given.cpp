// Bases that need no fit: the target provides them.
#include <utility>

#include "bases/base.h"
#include "util/error.h"

namespace crais {
namespace {

class Given : public BaseRule {
 public:
  explicit Given(MapOfTarget map) : map_(std::move(map)) {}

  Base build(const Target& target, at::Generator& /*rng*/) const override {
    return Base(map_(target));
  }
  std::optional<double> expected_cost(const Target& /*target*/) const override { return 0; }

 private:
  MapOfTarget map_;
};

const Enrol<BaseRegistry> kEnrolPriorBase("prior",
                                          "N(0, I), or the normal of an exported prior's moments",
                                          "prior", [](Spec&, const BaseOptions&) {
                                            return make_given(&Target::prior_base);
                                          });

const Enrol<BaseRegistry> kEnrolEncoderBase(
    "encoder[:W]", "the encoder's q(z|x), its standard deviations times W", "encoder",
    [](Spec& spec, const BaseOptions&) {
      return make_given([widening = spec.number("widening", 0.1, 10.0, 1.0)](const Target& target) {
        if (const auto amortised = target.amortised_base()) return amortised->widened(widening);
        throw argument_error("the `base` encoder: there is no encoder; use prior or laplace");
      });
    });

}  // namespace

std::unique_ptr<BaseRule> make_given(MapOfTarget map) {
  return std::make_unique<Given>(std::move(map));
}

}  // namespace crais
