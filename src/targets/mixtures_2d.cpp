// Mixtures in the plane: a ring of eight, two mixtures drawn at random, and wide ones.
//
// Constants: the experiments of "Adaptive Annealed Importance Sampling with Constant Rate Progress"
// (ICML 2023). Its figures used the widths `s` as variances although standard deviations were
// meant. Variances are the default here.
#include <array>
#include <cmath>
#include <map>
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
    throw argument_error("'", spec.text(), "': s must be variance or std");
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

const Enrol<TargetRegistry> kEnrolRing("u5[:s=variance|std]",
                                       "ring of 8 normals of width 0.1 at radius 3", "u5",
                                       mixture_of(ring(), false));
const Enrol<TargetRegistry> kEnrolTwo("u10[:s=variance|std]", "mixture of 2 normals in the plane",
                                      "u10", mixture_of(kTwo, true));
const Enrol<TargetRegistry> kEnrolFour("u11[:s=variance|std]", "mixture of 4 normals in the plane",
                                       "u11:s=std", mixture_of(kFour, true));

/// The means of wide mixtures: 16 to 48 normals scattered over [-15, 15]^2, drawn uniformly once,
/// in units of 5. They separate samplers that lose modes from samplers that keep them.
using Points = std::vector<double>;  // x and y alternate

const Points kMeans16 = {0.6093,  0.3044, -1.2964, -1.3604, -0.8079, 2.3047,  -2.8663, -0.1275,
                         1.8876,  2.1168, 0.9309,  -0.6526, 1.3796,  -2.4752, -1.5311, -1.6689,
                         2.4196,  2.6993, -2.0868, -0.5468, 1.5684,  0.9087,  -1.5721, 0.6506,
                         -2.2205, 0.0514, -0.4845, 1.4463,  -0.8296, -0.6571, -2.316,  -0.9893};

const Points kMeans24 = {0.7078,  -1.1678, 0.7151,  -0.3096, -1.5789, 1.3826,  -1.6852, -2.2051,
                         0.7741,  -1.1825, -2.6204, 2.7154,  -0.4942, -0.1259, 2.6152,  -0.0634,
                         -1.8032, 2.7065,  -1.3767, -1.9571, 1.6562,  -1.3121, -2.4262, 2.3265,
                         1.4768,  -2.9443, -0.4811, -2.6257, -1.485,  2.3079,  2.4273,  0.3108,
                         1.6843,  0.0727,  -2.3705, 0.8489,  1.1748,  -0.9639, 2.2413,  1.6521,
                         0.8168,  0.5977,  -1.3316, 2.9949,  -2.8775, -0.1226, -1.6084, -2.3068};

const Points kMeans32 = {-2.47,   1.436,   2.2011,  -2.8529, -1.8604, -2.3342, -1.228, -1.0657,
                         1.5831,  -1.4284, 2.2357,  -2.3107, -2.7578, -0.4272, 0.527,  -1.5143,
                         -1.7465, -2.225,  1.8097,  -0.1124, 0.9623,  2.293,   1.0929, 0.4175,
                         0.0074,  -1.6828, -0.146,  -0.7312, -1.6722, 2.0968,  1.5945, 0.829,
                         -1.0533, -2.9261, -1.4431, -2.3715, -2.6017, 0.5382,  2.774,  1.3975,
                         2.8836,  0.9667,  0.2269,  0.066,   2.2556,  2.3494,  0.5784, 2.0771,
                         -0.6766, -2.7244, -2.3968, 1.3974,  -0.9908, 0.4189,  -2.949, 1.2914,
                         -2.2493, 2.1219,  -1.4319, -0.6807, 0.925,   -2.0621, 2.9208, -1.1247};

const Points kMeans48 = {
    -0.108,  0.1386,  -0.4813, 1.8014,  1.4455,  1.1169,  0.01,    1.524,   -2.7506, -1.2404,
    1.7681,  -1.9278, 1.3688,  -2.4226, 2.4749,  2.5369,  -2.8624, 2.6042,  1.7481,  -2.9092,
    -1.6385, -2.6302, 2.222,   -0.2351, 2.0948,  -2.074,  -1.4337, -2.1378, -1.5298, 1.6096,
    1.4323,  2.6449,  2.1897,  1.4513,  2.0171,  1.7252,  -1.8295, 2.1681,  0.5538,  0.4792,
    2.8055,  0.894,   -1.2075, -2.6924, -2.2421, -1.6131, -2.6166, 0.5319,  -1.0386, 0.323,
    0.7243,  -0.2431, -0.4613, -1.0553, -0.0689, 1.4457,  2.285,   1.3724,  0.0411,  -2.0817,
    -0.4925, -2.7851, -1.9663, 0.6692,  -1.6504, -0.5177, -2.3659, -2.511,  1.1956,  -1.137,
    1.6715,  -1.7699, -0.7248, 2.8142,  -1.3987, 2.2036,  0.1769,  -1.1989, 1.5733,  2.5467,
    0.7608,  2.1482,  1.9988,  -2.9453, -2.4437, 0.6758,  2.3795,  0.702,   -2.9148, -2.4495,
    -1.1857, 0.2806,  -1.3588, -1.8722, -2.749,  2.4518};

constexpr double kUnit = 5.0, kSd = 2.0;

/// K equal kernels of weight 1: log Z = log(2 pi) + log(4 K).
std::unique_ptr<Target> wide_mixture(Spec& spec, const TargetOptions& options) {
  const std::map<int64_t, const Points*> means_of_size = {
      {16, &kMeans16}, {24, &kMeans24}, {32, &kMeans32}, {48, &kMeans48}};
  const int64_t count = spec.integer("components", 1, 1000);
  const auto entry = means_of_size.find(count);
  if (entry == means_of_size.end())
    throw argument_error("'", spec.text(), "': components must be 16, 24, 32 or 48");
  const at::Tensor means = kUnit * at::tensor(*entry->second, at::kDouble).view({count, 2});
  return std::make_unique<GaussianMixture>(options, means, at::full_like(means, kSd * kSd),
                                           at::zeros({count}, at::kDouble));
}

const Enrol<TargetRegistry> kEnrolSmcMixtures(
    "smc-mixture:K", "wide mixture of K = 16, 24, 32 or 48 normals of sd 2", "smc-mixture:16",
    wide_mixture);

}  // namespace
}  // namespace crais
