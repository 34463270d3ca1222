// Two averages of plain importance weights from the base: IWAE and the ELBO.
#include "estimates/method.h"
#include "samplers/importance.h"

namespace crais {
namespace {

using Average = Estimate (*)(const at::Tensor& log_w);

class ImportanceMethod : public Method {
 public:
  ImportanceMethod(Average average, int64_t num_samples)
      : average_(average), num_samples_(num_samples) {}

  MethodResult estimate(const Problem& problem, const Plan& /*plan*/,
                        at::Generator& rng) const override {
    const LogWeights weights = importance_log_weights(problem, num_samples_, rng);
    return {average_(checked_starts(weights.log_w, problem.target())), {}, {}, 0, weights.cost};
  }

 private:
  Average average_;
  int64_t num_samples_;
};

MethodRegistry::Factory average_of(Average average, int64_t num_samples) {
  return [=](Spec& spec, const AnnealingParts&) {
    return std::make_unique<ImportanceMethod>(average,
                                              spec.integer("samples", 1, 100'000'000, num_samples));
  };
}

const Enrol<MethodRegistry> kEnrolIwae(
    "iwae[:K]", "importance sampling from the base, K samples (5000)", "iwae:100",
    average_of([](const at::Tensor& log_w) { return log_normalizer(log_w); }, 5000));
const Enrol<MethodRegistry> kEnrolElbo("elbo[:K]",
                                       "evidence lower bound of the base, K samples (100)",
                                       "elbo:100", average_of(evidence_lower_bound, 100));

}  // namespace
}  // namespace crais
