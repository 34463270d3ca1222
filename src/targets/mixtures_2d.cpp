// Mixtures in the plane: a ring of eight, and two mixtures drawn at random.
//
// Constants: the experiments of "Adaptive Annealed Importance Sampling with Constant Rate Progress"
// (ICML 2023). Its figures used the widths `s` as variances although standard deviations were
// meant. Variances are the default here.
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "targets/gaussian_mixture.h"
#include "util/error.h"

namespace crais {
namespace {

struct Component {
  std::array<double, 2> mean, width;
  double weight;
};

const std::vector<Component> kTwo = {{{2.6033, 0.8211}, {0.5189, 0.6033}, 1.7381},
                                     {{-0.1783, -1.1537}, {0.6922, 0.9514}, 1.9599}};

const std::vector<Component> kFour = {{{-1.4348, -1.6012}, {0.5296, 0.6044}, 1.0541},
                                      {{-0.3754, -0.1817}, {0.7707, 0.7816}, 1.7398},
                                      {{1.2525, -2.5013}, {0.9555, 1.0557}, 1.4888},
                                      {{1.6261, 2.1189}, {0.9492, 0.6706}, 1.3785}};

/// Eight components on a circle of radius 3, the first at angle -pi.
std::vector<Component> ring() {
  std::vector<Component> components;
  for (int i = 0; i < 8; ++i) {
    const double angle = M_PI * (0.25 * i - 1);
    components.push_back({{3 * std::cos(angle), 3 * std::sin(angle)}, {0.1, 0.1}, 1.0});
  }
  return components;
}

/// True if the components' widths are variances, false if they are standard deviations.
bool widths_are_variances(Spec& spec) {
  const std::string reading = spec.word("s", "variance");
  if (reading != "variance" && reading != "std")
    throw argument_error("'" + spec.text() + "': s must be variance or std");
  return reading == "variance";
}

/// If `normalised`, weights belong to normalised components and Z is the sum of the weights. Else
/// weights belong to kernels.
TargetRegistry::Factory mixture_of(std::vector<Component> components, bool normalised) {
  return [=](Spec& spec, const TargetOptions& options) {
    const bool variances = widths_are_variances(spec);
    std::vector<at::Tensor> means, vs;
    std::vector<double> log_weights;
    for (const Component& c : components) {
      means.push_back(at::tensor({c.mean[0], c.mean[1]}, at::kDouble));
      const at::Tensor width = at::tensor({c.width[0], c.width[1]}, at::kDouble);
      vs.push_back(variances ? width : width.square());
      const double log_kernel = 0.5 * (2 * M_PI * vs.back()).log().sum().item<double>();
      log_weights.push_back(std::log(c.weight) - (normalised ? log_kernel : 0));
    }
    return std::make_unique<GaussianMixture>(options, at::stack(means), at::stack(vs),
                                             at::tensor(log_weights, at::kDouble));
  };
}

const Enrol<TargetRegistry> kEnrolRing("u5", {"u5[:s=variance|std]",
                                              "ring of 8 normals of width 0.1 at radius 3", "u5",
                                              mixture_of(ring(), false)});
const Enrol<TargetRegistry> kEnrolTwo("u10",
                                      {"u10[:s=variance|std]", "mixture of 2 normals in the plane",
                                       "u10", mixture_of(kTwo, true)});
const Enrol<TargetRegistry> kEnrolFour("u11",
                                       {"u11[:s=variance|std]", "mixture of 4 normals in the plane",
                                        "u11:s=std", mixture_of(kFour, true)});

}  // namespace
}  // namespace crais
