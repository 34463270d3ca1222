// Curved densities in the plane.                              [Rezende & Mohamed 2015, table 1]
//
// Constants: the experiments of "Adaptive Annealed Importance Sampling with Constant Rate Progress"
// (ICML 2023). U2 to U4 do not decay in z1, so they have a normaliser only between walls.
#include <cmath>
#include <functional>
#include <memory>

#include "targets/replicated.h"

namespace crais {
namespace {

using Formula = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& y)>;

at::Tensor bell(const at::Tensor& x, double sd) { return -0.5 * (x / sd).square(); }

/// Two bananas around a circle of radius 2.
at::Tensor u1(const at::Tensor& x, const at::Tensor& y) {
  const at::Tensor radius = at::stack({x, y}, -1).norm(2, -1);  // its gradient at 0 is 0
  // One statement each: compilers evaluate arguments in different orders, which changes gradients
  // by a rounding error.
  const at::Tensor left = bell(x + 2, 0.6), right = bell(x - 2, 0.6);
  const at::Tensor sides = at::logaddexp(right, left), ring = bell(radius - 2, 0.4);
  return ring + sides;
}

at::Tensor wave(const at::Tensor& x) { return at::sin(0.5 * M_PI * x); }

at::Tensor u2(const at::Tensor& x, const at::Tensor& y) { return bell(y - wave(x), 0.4); }

at::Tensor u3(const at::Tensor& x, const at::Tensor& y) {
  const at::Tensor dip = 3 * bell(x - 1, 0.6).exp();
  return at::logaddexp(bell(y - wave(x), 0.35), bell(y - wave(x) + dip, 0.35));
}

at::Tensor u4(const at::Tensor& x, const at::Tensor& y) {
  const at::Tensor drop = 3 * at::sigmoid((x - 1) / 0.3);
  return at::logaddexp(bell(y - wave(x), 0.4), bell(y - wave(x) + drop, 0.35));
}

ReplicatedFunction::LogDensity in_plane(const Formula& formula) {
  return [=](const at::Tensor& z) { return formula(z.select(-1, 0), z.select(-1, 1)); };
}

/// The potential U1, with its two bananas as components.
class Bananas : public ReplicatedFunction {
 public:
  explicit Bananas(const TargetOptions& options)
      : ReplicatedFunction(options, 2, kLogNormalizer, in_plane(u1)) {}

  std::optional<Components> components(const at::Tensor& z) const override {
    const at::Tensor x = z.select(-1, 0).to(at::kDouble);
    const at::Tensor right = at::sigmoid(bell(x - 2, 0.6) - bell(x + 2, 0.6));
    return Components{at::stack({1 - right, right}, -1), at::full({2}, 0.5, right.options())};
  }

 private:
  static constexpr double kLogNormalizer = 1.8775016261;
};

/// For |z1| > width, the density decays like a normal: a wall that a leapfrog step can feel.
constexpr double kWallSd = 0.1;

at::Tensor wall(const at::Tensor& x, double width) {
  return bell((x.abs() - width).clamp_min(0), kWallSd);
}

/// log Z of a density between such walls, by the trapezoid rule, to 1e-6. The densities are smooth
/// and zero outside the grid.
double integral(const Formula& formula, double width) {
  constexpr double kStep = 0.02;
  const double reach = width + 10 * kWallSd;
  const at::Tensor x = at::arange(-reach, reach, kStep, at::kDouble).unsqueeze(1);
  const at::Tensor y = at::arange(-9.0, 6.0, kStep, at::kDouble).unsqueeze(0);
  return formula(x, y).flatten().logsumexp(0).item<double>() + 2 * std::log(kStep);
}

TargetRegistry::Factory potential(const Formula& formula) {
  return [=](Spec& spec, const TargetOptions& options) {
    const double width = spec.number("width", 0.0, 100.0, 0.0);
    if (width == 0)
      return std::make_unique<ReplicatedFunction>(options, 2, std::nullopt, in_plane(formula));
    const Formula walled = [=](const at::Tensor& x, const at::Tensor& y) {
      return formula(x, y) + wall(x, width);
    };
    return std::make_unique<ReplicatedFunction>(options, 2, integral(walled, width),
                                                in_plane(walled));
  };
}

const Enrol<TargetRegistry> kEnrolU1("u1", "two bananas in the plane", "u1", factory_of<Bananas>);
const Enrol<TargetRegistry> kEnrolU2("u2[:WIDTH]",
                                     "a wave in the plane; improper without walls at |z1| = WIDTH",
                                     "u2:width=4", potential(u2));
const Enrol<TargetRegistry> kEnrolU3(
    "u3[:WIDTH]", "a wave that splits and joins; improper without walls at |z1| = WIDTH",
    "u3:width=4", potential(u3));
const Enrol<TargetRegistry> kEnrolU4("u4[:WIDTH]",
                                     "a wave that splits; improper without walls at |z1| = WIDTH",
                                     "u4:width=4", potential(u4));

/// Rosenbrock's banana as a density [Rosenbrock 1960]: x ~ N(1, 1), y ~ N(x^2, 0.1^2), without the
/// normalising factor: Z = 2 pi / 10.
class Rosenbrock : public ReplicatedFunction {
 public:
  explicit Rosenbrock(const TargetOptions& options)
      : ReplicatedFunction(options, 2, std::log(2 * M_PI / 10), [](const at::Tensor& z) {
          const at::Tensor x = z.select(-1, 0), y = z.select(-1, 1);
          return -0.5 * ((1 - x).square() + 100 * (y - x.square()).square());
        }) {}

 protected:
  std::optional<at::Tensor> draw(const at::Tensor& like, at::Generator& rng) const override {
    const at::Tensor e = at::empty_like(like).normal_(0, 1, rng), x = 1 + e.select(-1, 0);
    return at::stack({x, x.square() + 0.1 * e.select(-1, 1)}, -1);
  }
};

const Enrol<TargetRegistry> kEnrolRosenbrock("rosenbrock", "a banana in the plane, 0.1 thick",
                                             "rosenbrock", factory_of<Rosenbrock>);

}  // namespace
}  // namespace crais
