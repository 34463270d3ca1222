// Functions of the coordinates: each coordinate, and the length of the vector.
#include <string>
#include <vector>

#include "estimates/expectation.h"

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

const Enrol<ExpectationRegistry> kEnrolMoments("moments",
                                               {"moments", "every coordinate", "moments",
                                                [](Spec&) { return std::make_unique<Moments>(); }});
const Enrol<ExpectationRegistry> kEnrolNorm("norm", {"norm", "the length |z|", "norm", [](Spec&) {
                                                       return std::make_unique<Length>("|z|", 1);
                                                     }});
const Enrol<ExpectationRegistry> kEnrolRadius2("radius2", {"radius2", "the squared length |z|^2",
                                                           "radius2", [](Spec&) {
                                                             return std::make_unique<Length>(
                                                                 "|z|^2", 2);
                                                           }});

}  // namespace
}  // namespace crais
