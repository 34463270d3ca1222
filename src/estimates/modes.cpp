// The share of the target's mass that each of its components holds.
#include <string>
#include <vector>

#include "estimates/expectation.h"
#include "util/error.h"

namespace crais {
namespace {

/// The responsibilities of components: E[h_c] under the target is exactly the share of component c
/// in Z, even if components overlap.
class Modes : public Expectation {
 public:
  std::vector<std::string> outputs(const Target& target) const override {
    std::vector<std::string> names;
    const int64_t count = components_of(target, probe_point(target)).masses.size(0);
    names.reserve(static_cast<size_t>(count));
    for (int64_t c = 1; c <= count; ++c) names.push_back("mode " + std::to_string(c));
    return names;
  }
  at::Tensor values(const Target& target, const at::Tensor& z) const override {
    return components_of(target, z).shares;
  }
  std::optional<at::Tensor> truth(const Target& target) const override {
    return components_of(target, probe_point(target)).masses;
  }

 private:
  static at::Tensor probe_point(const Target& target) {
    return at::zeros({target.num_problems(), 1, target.dim()}, target.options());
  }
  static Components components_of(const Target& target, const at::Tensor& z) {
    const auto components = target.components(z);
    if (!components)
      throw argument_error(
          "`expectations` modes: this target does not say which modes it has; choose one that is a "
          "mixture, such as u11 or smc-mixture:16");
    return *components;
  }
};

const Enrol<ExpectationRegistry> kEnrolModes("modes",
                                             {"modes", "the mass of each component of a mixture",
                                              "modes",
                                              [](Spec&) { return std::make_unique<Modes>(); }});

}  // namespace
}  // namespace crais
