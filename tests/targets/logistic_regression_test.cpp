#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "core/rng.h"
#include "estimates/estimate.h"
#include "samplers/importance.h"
#include "samplers/plan.h"
#include "support/quadrature.h"
#include "support/statistics.h"
#include "support/temporary_folder.h"
#include "util/parallel.h"

namespace crais {
namespace {

std::unique_ptr<Target> make(const std::string& spec, int64_t num_problems,
                             const std::string& data_dir = "") {
  return TargetRegistry::instance().make("target", spec, {num_problems, at::kDouble, data_dir});
}

/// AIS from N(0, I) with tuned steps: [P] log-evidences.
at::Tensor anneal(const Target& target, int64_t steps, int64_t chains) {
  use_one_thread_per_operation();  // several would wait for each other more than they work
  const auto path = PathRegistry::instance().make("path", "geometric");
  const auto rule = ScheduleRegistry::instance().make("schedule", "geometric:1e-4", {steps});
  const auto kernel = TransitionRegistry::instance().make("kernel", "hmc", {2});
  const Problem problem(borrow(target),
                        AffineMap::identity(target.num_problems(), target.dim(), at::kDouble));
  at::Generator pilot_rng = make_generator(1), rng = make_generator(2);
  const Plan plan = run_pilot(problem, *path, *rule, *kernel, {}, pilot_rng).plan;
  return log_normalizer(anneal(problem, *path, plan, *kernel, chains, rng).log_w).value;
}

TEST(LogisticRegression, IsItsFormula) {
  const testing::TemporaryFolder folder;
  const std::string file = folder.file("t.csv", "1,10,R\n3,40,M\n8,10,R\n");
  const auto target = make("logistic-regression:" + file + ",variance=2", 1);
  const double w[] = {0.8, -1.7}, sd = std::sqrt(26.0 / 3.0);
  const double x[3][2] = {
      {-3 / sd, -std::sqrt(0.5)}, {-1 / sd, std::sqrt(2.0)}, {4 / sd, -std::sqrt(0.5)}};
  const double sign[] = {1, -1, 1};
  double expected = -0.5 * (0.64 + 2.89) / 2 - std::log(2 * M_PI * 2);
  for (int n = 0; n < 3; ++n)
    expected -= std::log1p(std::exp(-sign[n] * (w[0] * x[n][0] + w[1] * x[n][1])));
  const at::Tensor z = at::tensor({w[0], w[1]}, at::kDouble).view({1, 1, 2});
  EXPECT_NEAR(target->log_density(z).item<double>(), expected, 1e-12);
  // Far out on the wrong side it is linear, not infinite.
  EXPECT_TRUE((target->log_density(1e5 * z).isfinite()).all().item<bool>());
}

TEST(LogisticRegression, AnnealsToItsEvidence) {
  const testing::TemporaryFolder folder;
  const std::string file =
      folder.file("t.csv", "0.3,1,a\n1.1,-2,b\n-0.4,0.5,a\n2.5,1.5,b\n0.2,-1,b\n-1.5,0.3,a\n");
  const auto target = make("logistic-regression:file=" + file + ",variance=2", 40);
  const double truth =
      testing::PlaneQuadrature(*make("logistic-regression:" + file + ",variance=2", 1))
          .log_normalizer();
  const at::Tensor ratio = (anneal(*target, 60, 32) - truth).exp();
  EXPECT_LT(std::abs(testing::z_score(ratio, 1)), 5);
  EXPECT_LT(testing::std_error(ratio), 0.05);
}

/// N(mode, curvature^-1), by Newton steps whose Hessian is a difference quotient of gradients.
AffineMap laplace_base(const Target& target) {
  const int64_t dim = target.dim();
  const auto grad = [&](const at::Tensor& rows) {
    return target.evaluate(rows.unsqueeze(0)).grad[0];
  };
  const at::Tensor steps = 1e-4 * at::eye(dim, at::kDouble);
  at::Tensor mode = at::zeros({1, dim}, at::kDouble), curvature;
  for (int i = 0; i < 20; ++i) {
    curvature = (grad(mode - steps) - grad(mode + steps)) / 2e-4;
    mode = mode + at::linalg_solve(curvature, grad(mode)[0]).unsqueeze(0);
  }
  return {mode, at::linalg_cholesky(at::linalg_inv(curvature)).unsqueeze(0)};
}

class Pima : public ::testing::TestWithParam<std::pair<const char*, double>> {};
INSTANTIATE_TEST_SUITE_P(
    Priors, Pima,
    ::testing::Values(std::pair{"logistic-regression:pima", -438.98},
                      std::pair{"logistic-regression:pima,variance=5", -432.70}),
    [](const auto& instance) { return instance.index == 0 ? "Wide" : "Narrow"; });

TEST_P(Pima, HasItsReferenceEvidence) {
  const char* const data = std::getenv("CRAIS_DATA");
  if (!data || !std::filesystem::exists(std::filesystem::path(data) / "uci"))
    GTEST_SKIP() << "needs CRAIS_DATA/uci";
  const auto target = make(GetParam().first, 1, data);
  const Problem problem(borrow(*target), laplace_base(*target));
  at::Generator rng = make_generator(3);
  const Estimate found = log_normalizer(importance_log_weights(problem, 20000, rng).log_w);
  EXPECT_LT(found.std_error.item<double>(), 0.002);
  EXPECT_NEAR(found.value.item<double>(), GetParam().second, 0.01);  // known to two decimals
  // From N(0, I), 558 nats away; the error of this short run is 0.2.
  const auto four = make(GetParam().first, 4, data);
  EXPECT_NEAR(anneal(*four, 400, 16).mean().item<double>(), GetParam().second, 1.0);
}

}  // namespace
}  // namespace crais
