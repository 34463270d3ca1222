// N(0, I), or the normal with the mean and covariance of a prior that is none.
#include "bases/base.h"

namespace crais {
namespace {

class Prior : public BaseRule {
 public:
  Base build(const Target& target, at::Generator& /*rng*/) const override {
    return Base(target.prior_base());
  }
  std::optional<double> expected_cost(const Target& /*target*/) const override { return 0; }
};

const Enrol<BaseRegistry> kEnrolPriorBase(
    "prior", {"prior", "N(0, I), or the normal of an exported prior's moments", "prior",
              [](Spec&) { return std::make_unique<Prior>(); }});

}  // namespace
}  // namespace crais
