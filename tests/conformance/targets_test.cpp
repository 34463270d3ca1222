// What every registered target must do.
#include <gtest/gtest.h>

#include <cctype>

#include "core/problem.h"
#include "core/rng.h"
#include "support/quadrature.h"
#include "support/registered.h"
#include "support/statistics.h"
#include "support/temporary_folder.h"

namespace crais {
namespace {

using testing::max_abs_diff;

std::vector<std::string> target_specs() {
  std::vector<std::string> all = {"u2",  "u5:s=std",           "u10:s=std",
                                  "u11", "student-t:2,nu=1.5", "mixture:3"};
  for (const auto& [name, entry] : TargetRegistry::instance().entries())
    all.push_back(entry.example);
  return all;
}

class Targets : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Target> make(int64_t num_problems, at::ScalarType dtype = at::kDouble) const {
    std::string spec = GetParam();
    if (const auto file = spec.find("FILE"); file != std::string::npos)
      spec.replace(file, 4, file_);
    return TargetRegistry::instance().make("target", spec, {num_problems, dtype, ""});
  }

  /// Points around and beyond the base.
  static at::Tensor points(const Target& target, int64_t k, uint64_t seed) {
    at::Generator rng = make_generator(seed);
    return at::randn({target.num_problems(), k, target.dim()}, rng, at::kDouble) * 1.7 + 0.3;
  }

  /// Finer than a grid: tests/targets/densities_test.cpp has it.
  static bool needs_own_quadrature() { return GetParam().rfind("funnel", 0) == 0; }
  /// Integrated over the plane; else as a product.
  static bool is_plane(const Target& target) {
    return target.dim() == 2 && GetParam().rfind("student", 0) != 0;
  }

  testing::TemporaryFolder folder_;
  std::string file_ = folder_.file("cases.csv", "1,3.5,a\n2,0.5,b\n4,1.5,a\n3,-1,b\n0,0,a\n");
};

INSTANTIATE_TEST_SUITE_P(Every, Targets, ::testing::ValuesIn(target_specs()),
                         testing::named_by_index_and_spec);

TEST_P(Targets, KeepTheirShapes) {
  const auto target = make(3);
  EXPECT_EQ(target->num_problems(), 3);
  for (const int64_t k : {1, 4}) {
    const at::Tensor z = points(*target, k, 1);
    const at::Tensor value = target->log_density(z);
    const Evaluation both = target->evaluate(z);
    EXPECT_EQ(value.sizes(), (std::vector<int64_t>{3, k}));
    EXPECT_EQ(both.log_density.sizes(), value.sizes());
    EXPECT_EQ(both.grad.sizes(), z.sizes());
    EXPECT_FALSE(both.log_density.requires_grad());
    EXPECT_LT(max_abs_diff(both.log_density, value),
              1e-12 * (1 + value.abs().max().item<double>()));
  }
  if (const auto truth = target->true_log_normalizer()) {
    EXPECT_EQ(truth->sizes(), std::vector<int64_t>{3});
    EXPECT_EQ(truth->scalar_type(), at::kDouble);
  }
  at::Generator rng = make_generator(2);
  if (const auto draws = target->exact_sample(5, rng)) {
    EXPECT_EQ(draws->sizes(), (std::vector<int64_t>{3, 5, target->dim()}));
  }
}

TEST_P(Targets, GradientIsTheDifferenceQuotient) {
  const auto target = make(2);
  const at::Tensor z = points(*target, 20, 4);
  const at::Tensor grad = target->evaluate(z).grad;
  constexpr double kStep = 1e-4;
  for (int64_t d = 0; d < target->dim(); ++d) {
    at::Tensor step = at::zeros_like(z);
    step.select(-1, d).fill_(kStep);
    const auto across = [&](double steps) {
      return target->log_density(z + steps * step) - target->log_density(z - steps * step);
    };
    const at::Tensor quotient = (8 * across(1) - across(2)) / (12 * kStep);
    EXPECT_LT(max_abs_diff(quotient / (1 + grad.select(-1, d).abs()),
                           grad.select(-1, d) / (1 + grad.select(-1, d).abs())),
              1e-6)
        << "coordinate " << d;
  }
}

TEST_P(Targets, CurvatureIsTheDifferenceQuotientOfTheGradient) {
  const auto target = make(20);
  const at::Tensor z = points(*target, 1, 10).squeeze(1);
  const at::Tensor curvature = target->curvature(z);
  EXPECT_EQ(curvature.sizes(), (std::vector<int64_t>{20, target->dim(), target->dim()}));
  EXPECT_GE(target->curvature_cost(), 2);
  constexpr double kStep = 1e-5;
  const auto grad = [&](const at::Tensor& at) {
    return target->evaluate(at.unsqueeze(1)).grad.squeeze(1);
  };
  for (int64_t d = 0; d < target->dim(); ++d) {
    at::Tensor step = at::zeros_like(z);
    step.select(-1, d).fill_(kStep);
    const at::Tensor quotient = (grad(z - step) - grad(z + step)) / (2 * kStep);
    const at::Tensor size = 1 + curvature.select(2, d).abs();
    EXPECT_LT(max_abs_diff(quotient / size, curvature.select(2, d) / size), 1e-5)
        << "coordinate " << d;
  }
}

TEST_P(Targets, AnyNumberOfReplicatesCanBeSelected) {
  const auto target = make(3);
  const auto part = target->select(at::tensor({2, 0}, at::kLong));
  EXPECT_EQ(part->num_problems(), 2);
  EXPECT_EQ(part->dim(), target->dim());
  EXPECT_EQ(part->options().dtype(), target->options().dtype());
  EXPECT_EQ(part->curvature_cost(), target->curvature_cost());
  const at::Tensor z = points(*part, 4, 11);
  const Evaluation alone = make(2)->evaluate(z), found = part->evaluate(z);
  EXPECT_TRUE(found.log_density.equal(alone.log_density));
  EXPECT_TRUE(found.grad.equal(alone.grad));
  EXPECT_TRUE(part->log_density(z).equal(make(2)->log_density(z)));
  EXPECT_EQ(part->true_log_normalizer().has_value(), target->true_log_normalizer().has_value());
  at::Generator rng = make_generator(12), same = make_generator(12);
  if (const auto draws = part->exact_sample(5, rng)) {
    EXPECT_TRUE(draws->equal(*make(2)->exact_sample(5, same)));
  }
}

TEST_P(Targets, AgreeInSinglePrecision) {
  const auto wide = make(2), narrow = make(2, at::kFloat);
  const at::Tensor z = points(*wide, 20, 5).to(at::kFloat);
  const Evaluation expected = wide->evaluate(z.to(at::kDouble)), found = narrow->evaluate(z);
  EXPECT_EQ(found.grad.scalar_type(), at::kFloat);
  const auto relative = [](const at::Tensor& a, const at::Tensor& b) {
    return max_abs_diff(a.to(at::kDouble) / (1 + b.abs()), b / (1 + b.abs()));
  };
  EXPECT_LT(relative(found.log_density, expected.log_density), 1e-5);
  EXPECT_LT(relative(found.grad, expected.grad), 1e-4);
}

TEST_P(Targets, NormaliserIsTheIntegral) {
  const auto target = make(1);
  const auto truth = target->true_log_normalizer();
  if (!truth || needs_own_quadrature()) return;
  const double expected = truth->item<double>();
  if (is_plane(*target)) {
    EXPECT_NEAR(testing::PlaneQuadrature(*target).log_normalizer(), expected, 1e-5);
    return;
  }
  const at::Tensor z = points(*target, 2, 6)[0];
  for (int64_t anchor = 0; anchor < 2; ++anchor)  // the same from two points: it is a product
    EXPECT_NEAR(testing::ProductQuadrature(*target, z[anchor]).log_normalizer(), expected, 1e-6);
}

TEST_P(Targets, ExactDrawsFollowTheDensity) {
  const auto target = make(2);
  at::Generator rng = make_generator(7);
  constexpr int64_t kDraws = 40000;
  const auto draws = target->exact_sample(kDraws, rng);
  if (!draws || needs_own_quadrature()) return;
  EXPECT_GT(max_abs_diff((*draws)[0], (*draws)[1]), 0.1);  // each problem has its own
  const at::Tensor all = draws->reshape({2 * kDraws, target->dim()});
  const double total = 2 * kDraws;
  if (is_plane(*target)) {
    const testing::PlaneQuadrature plane(*target);
    EXPECT_LT(testing::worst_count(plane.counts(all), plane.probabilities(), total), 5);
    // A small shift shows.
    EXPECT_GT(testing::worst_count(plane.counts(all + 0.2), plane.probabilities(), total), 5);
    return;
  }
  const testing::ProductQuadrature product(*target, points(*target, 1, 8)[0][0]);
  constexpr int64_t kBins = 20;
  const at::Tensor even = at::full({kBins}, 1.0 / kBins, at::kDouble);
  const auto worst = [&](int64_t d, const at::Tensor& x) {
    const at::Tensor bin =
        (product.distribution(d, x) * double(kBins)).floor().clamp(0, kBins - 1).to(at::kLong);
    return testing::worst_count(at::bincount(bin, {}, kBins).to(at::kDouble), even, total);
  };
  for (int64_t d = 0; d < target->dim(); ++d) {
    EXPECT_LT(worst(d, all.select(1, d)), 5) << "coordinate " << d;
    EXPECT_GT(worst(d, all.select(1, d) + 0.1), 5) << "coordinate " << d;
    // Independent coordinates: the signs of two neighbours around their medians.
    const int64_t next = (d + 1) % target->dim();
    if (next == d) continue;
    const at::Tensor above = (product.distribution(d, all.select(1, d)) > 0.5) ^
                             (product.distribution(next, all.select(1, next)) > 0.5);
    EXPECT_LT(std::abs(above.sum().item<double>() - total / 2) / std::sqrt(total / 4), 5);
  }
}

}  // namespace
}  // namespace crais
