// The functions whose means are known by name: coordinates, lengths, and shares of components.
#include <string>
#include <vector>

#include "estimates/expectation.h"
#include "util/error.h"

namespace crais {
namespace {

class Moments : public Expectation {
 public:
  std::vector<std::string> outputs(const Target& target) const override {
    std::vector<std::string> names;
    names.reserve(static_cast<size_t>(target.dim()));
    for (int64_t d = 1; d <= target.dim(); ++d) names.push_back("z" + std::to_string(d));
    return names;
  }
  at::Tensor values(const Target& /*target*/, const at::Tensor& z) const override { return z; }
};

class Length : public Expectation {
 public:
  Length(std::string name, int64_t power) : name_(std::move(name)), power_(power) {}

  std::vector<std::string> outputs(const Target& /*target*/) const override { return {name_}; }
  at::Tensor values(const Target& /*target*/, const at::Tensor& z) const override {
    return z.to(at::kDouble).norm(2, -1, /*keepdim=*/true).pow(power_);
  }

 private:
  std::string name_;
  int64_t power_;
};

const Enrol<ExpectationRegistry> kEnrolMoments("moments", "every coordinate", "moments",
                                               factory_of<Moments>);
const Enrol<ExpectationRegistry> kEnrolNorm("norm", "the length |z|", "norm", [](Spec&) {
  return std::make_unique<Length>("|z|", 1);
});
const Enrol<ExpectationRegistry> kEnrolRadius2("radius2", "the squared length |z|^2", "radius2",
                                               [](Spec&) {
                                                 return std::make_unique<Length>("|z|^2", 2);
                                               });

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

const Enrol<ExpectationRegistry> kEnrolModes("modes", "the mass of each component of a mixture",
                                             "modes", factory_of<Modes>);

}  // namespace
}  // namespace crais
