// Neal's funnel: the first coordinate is the log scale of all others.                  [Neal 2003]
#include <cmath>
#include <memory>

#include "targets/replicated.h"

namespace crais {
namespace {

class Funnel : public ReplicatedFunction {
 public:
  Funnel(const TargetOptions& options, int64_t dim)
      : ReplicatedFunction(options, dim, 0.0, [](const at::Tensor& z) {
          const at::Tensor v = z.slice(-1, 0, 1), x = z.slice(-1, 1);
          const at::Tensor others =
              -0.5 * x.square() * (-v).exp() - 0.5 * v - 0.5 * std::log(2 * M_PI);
          const at::Tensor of_v =
              -0.5 * (v / kScale).square() - std::log(kScale) - 0.5 * std::log(2 * M_PI);
          return of_v.sum(-1) + others.sum(-1);
        }) {}

 protected:
  std::optional<at::Tensor> draw(const at::Tensor& like, at::Generator& rng) const override {
    const at::Tensor e = at::empty_like(like).normal_(0, 1, rng);
    const at::Tensor v = kScale * e.slice(-1, 0, 1);
    return at::cat({v, e.slice(-1, 1) * (0.5 * v).exp()}, -1);
  }

 private:
  static constexpr double kScale = 3;
};

const Enrol<TargetRegistry> kEnrolFunnel("funnel[:DIM]",
                                         "v ~ N(0, 9), and DIM - 1 (9) others of variance exp(v)",
                                         "funnel:2", [](Spec& spec, const TargetOptions& options) {
                                           return std::make_unique<Funnel>(
                                               options, spec.integer("dim", 2, 100'000, 10));
                                         });

}  // namespace
}  // namespace crais
