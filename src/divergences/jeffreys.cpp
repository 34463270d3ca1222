// f(u) = (u - 1) log u: KL(q || pi) + KL(pi || q)
#include "core/divergence.h"

namespace crais {
namespace {

class Jeffreys : public Divergence {
 public:
  at::Tensor f(const at::Tensor& log_u) const override { return log_u.expm1() * log_u; }
  at::Tensor g(const at::Tensor& log_u) const override { return log_u.expm1() + log_u; }
  at::Tensor slope(const at::Tensor& log_u) const override { return log_u.exp() + 1; }
};

const Enrol<DivergenceRegistry> kEnrolJeffreys(
    "jeffreys", {"jeffreys", "the sum of both Kullback-Leibler divergences", "jeffreys",
                 [](Spec&) { return std::make_unique<Jeffreys>(); }});

}  // namespace
}  // namespace crais
