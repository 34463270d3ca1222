// Benchmarks of nested sampling: likelihoods under a uniform prior, by their published definitions.
// [Feroz, Hobson & Bridges 2009; Dittmann 2024]
#include "targets/uniform_prior.h"

#include <cmath>
#include <map>

#include "util/error.h"

namespace crais {
namespace {

const Enrol<TargetRegistry> kEnrolEggbox(
    "eggbox", {"eggbox", "(2 + cos(x/2) cos(y/2))^5 on [0, 10 pi]^2, uniform prior: 18 modes",
               "eggbox", [](Spec&, const TargetOptions& options) {
                 return under_uniform_prior(options, 2, 0.0, 10 * M_PI, 235.85594,
                                            [](const at::Tensor& theta) {
                                              return (2 + (0.5 * theta).cos().prod(-1)).pow(5);
                                            });
               }});

/// log evidence by quadrature over the distance from a centre. The box contains practically all
/// mass.
const std::map<int64_t, double> kLogShells = {{2, -1.7456}, {5, -5.6736}, {10, -14.5905}};

at::Tensor log_shell(const at::Tensor& theta, double centre) {
  const at::Tensor first = (theta.slice(-1, 0, 1) - centre).square();
  const at::Tensor radius = (first + theta.slice(-1, 1).square().sum(-1, true)).squeeze(-1).sqrt();
  return normal_log_density(radius, 2.0, 0.1);
}

const Enrol<TargetRegistry> kEnrolShells(
    "shells",
    {"shells[:DIM]", "two shells of radius 2, 0.1 thick, in DIM (2) dimensions, uniform prior",
     "shells", [](Spec& spec, const TargetOptions& options) {
       const int64_t dim = spec.integer("dim", 2, 1000, 2);
       const auto entry = kLogShells.find(dim);
       return under_uniform_prior(
           options, dim, -6.0, 6.0,
           entry == kLogShells.end() ? std::nullopt : std::optional<double>(entry->second),
           [](const at::Tensor& theta) {
             return at::logaddexp(log_shell(theta, -3.5), log_shell(theta, 3.5));
           });
     }});

const Enrol<TargetRegistry> kEnrolRosenbrockBox(
    "rosenbrock-box", {"rosenbrock-box", "five bananas side by side, uniform prior on [-10, 10]^10",
                       "rosenbrock-box", [](Spec&, const TargetOptions& options) {
                         return under_uniform_prior(
                             options, 10, -10.0, 10.0, -29.995788, [](const at::Tensor& theta) {
                               const at::Tensor x = theta.slice(-1, 0, {}, 2),
                                                y = theta.slice(-1, 1, {}, 2);
                               return -(10 * (x.square() - y).square() + (x - 1).square()).sum(-1);
                             });
                       }});

}  // namespace
}  // namespace crais
