// Bases that need no fit: the target provides them.
#include <functional>
#include <utility>

#include "bases/base.h"
#include "util/error.h"

namespace crais {
namespace {

class Given : public BaseRule {
 public:
  explicit Given(std::function<AffineMap(const Target&)> map) : map_(std::move(map)) {}

  Base build(const Target& target, at::Generator& /*rng*/) const override {
    return Base(map_(target));
  }
  std::optional<double> expected_cost(const Target& /*target*/) const override { return 0; }

 private:
  std::function<AffineMap(const Target&)> map_;
};

AffineMap encoded(const Target& target) {
  if (const auto amortised = target.amortised_base()) return *amortised;
  throw argument_error("the `base` encoder: there is no encoder; use prior or laplace");
}

const Enrol<BaseRegistry> kEnrolPriorBase(
    "prior", "N(0, I), or the normal of an exported prior's moments", "prior",
    [](Spec&, const BaseOptions&) {
      return std::make_unique<Given>([](const Target& target) { return target.prior_base(); });
    });

const Enrol<BaseRegistry> kEnrolEncoderBase("encoder[:W]",
                                            "the encoder's q(z|x), its standard deviations times W",
                                            "encoder", [](Spec& spec, const BaseOptions&) {
                                              const double widening =
                                                  spec.number("widening", 0.1, 10.0, 1.0);
                                              return std::make_unique<Given>(
                                                  [=](const Target& target) {
                                                    return encoded(target).widened(widening);
                                                  });
                                            });

}  // namespace

std::unique_ptr<BaseRule> make_given(const AffineMap& map) {
  return std::make_unique<Given>([=](const Target&) { return map; });
}

}  // namespace crais
