// N(0, I), whatever the target.
#include "bases/base.h"

namespace crais {
namespace {

class Prior : public BaseRule {
 public:
  Base build(const Target& target, at::Generator& /*rng*/) const override {
    return Base(AffineMap::identity(target.num_problems(), target.dim(), target.options()));
  }
};

const Enrol<BaseRegistry> kEnrolPriorBase("prior", {"prior", "N(0, I)", "prior", [](Spec&) {
                                                      return std::make_unique<Prior>();
                                                    }});

}  // namespace
}  // namespace crais
