#include <gtest/gtest.h>

#include "evaluation/choices.h"
#include "evaluation/log_normalizer.h"
#include "evaluation/result_store.h"
#include "evaluation/run_problems.h"
#include "io/json.h"
#include "support/expect_error.h"
#include "support/spoiled_forces.h"
#include "support/targets.h"
#include "support/temporary_folder.h"

namespace crais {
namespace {

using testing::DiagonalGaussian;
using testing::SpoiledForces;
using testing::Spoiling;
using testing::TemporaryFolder;

constexpr int64_t kForced = 6;
constexpr int64_t kCurvature = 900;  // evaluations

/// A target whose forces in bfloat16 are spoiled so much, which says whether they pay, and whose
/// values are off where it has them.
class WithForces : public SpoiledForces {
 public:
  WithForces(std::shared_ptr<const Target> exact, Spoiling spoiling, bool pays, double off)
      : SpoiledForces(exact, Spoiling::kNone),
        exact_(std::move(exact)),
        spoiling_(spoiling),
        off_(off) {
    traits_ = exact_->traits();
    traits_.forces_pay = pays;
    traits_.curvature_cost = kCurvature;
  }

  std::shared_ptr<const Target> with_forces(at::ScalarType dtype) const override {
    EXPECT_EQ(dtype, at::kBFloat16);
    return std::make_shared<SpoiledForces>(exact_, spoiling_, off_);
  }
  std::shared_ptr<const Target> select(const at::Tensor& index) const override {
    return std::make_shared<WithForces>(exact_->select(index), spoiling_, traits_.forces_pay, off_);
  }

 private:
  std::shared_ptr<const Target> exact_;
  Spoiling spoiling_;
  double off_;
};

std::shared_ptr<const Target> make_target(Spoiling spoiling, bool pays = true, double off = 0.0) {
  const std::vector<double> mean = {1.2, -0.7, 0.4}, sd = {0.3, 0.8, 0.5};
  return std::make_shared<WithForces>(std::make_shared<DiagonalGaussian>(kForced, mean, sd, 0.9),
                                      spoiling, pays, off);
}

EstimateOptions options(const std::string& force_dtype, const std::string& base = "prior") {
  return {.base = base, .chains = 8, .seed = 3, .steps = 12, .force_dtype = force_dtype};
}

TEST(ForceChoice, AutoTakesForcesThatPayAndAcceptAsOften) {
  const auto chosen = [](Spoiling spoiling, bool pays, const std::string& asked) {
    return Estimator(options(asked)).tune(*make_target(spoiling, pays)).state().forces;
  };
  EXPECT_EQ(chosen(Spoiling::kRounded, true, "auto"), at::kBFloat16);
  EXPECT_FALSE(chosen(Spoiling::kRounded, false, "auto"));
  EXPECT_FALSE(chosen(Spoiling::kRounded, true, "float32"));
  EXPECT_EQ(chosen(Spoiling::kRounded, false, "bfloat16"), at::kBFloat16);
  for (const auto spoiling :
       {Spoiling::kWeak, Spoiling::kFlipped, Spoiling::kConstant, Spoiling::kRandom}) {
    EXPECT_FALSE(chosen(spoiling, true, "auto")) << int(spoiling);
    EXPECT_EQ(chosen(spoiling, true, "bfloat16"), at::kBFloat16) << int(spoiling);
  }
}

TEST(ForceChoice, AutoTakesOnlyValuesThatAgree) {
  const auto chosen = [](double off) {
    const auto target = make_target(Spoiling::kRounded, true, off);
    return Estimator(options("auto")).tune(*target).state().forces;
  };
  for (const double sign : {1.0, -1.0}) {
    EXPECT_EQ(chosen(sign * 5e-4), at::kBFloat16);
    EXPECT_FALSE(chosen(sign * 2e-3));
  }
}

TEST(ForceChoice, NothingIsAnnealedNothingIsChosen) {
  EstimateOptions asked = options("bfloat16");
  asked.methods = {"iwae:20"};
  EXPECT_FALSE(Estimator(asked).tune(*make_target(Spoiling::kRounded)).state().forces);
}

TEST(ForceChoice, EstimatesAreRightWithAnyForces) {
  for (const char* base : {"auto", "prior", "laplace"}) {
    for (const auto spoiling : {Spoiling::kRounded, Spoiling::kFlipped}) {
      EstimateOptions asked = options("bfloat16", base);
      asked.chains = 64;
      const Result found = estimate_log_normalizer(*make_target(spoiling), asked);
      const at::Tensor error = found.value - 0.9;
      EXPECT_LT((error / (5 * found.std_error + 1e-9)).abs().max().item<double>(), 1.0)
          << base << " " << int(spoiling);
    }
  }
}

TEST(ForceChoice, RefusesWhatIsNotThere) {
  const DiagonalGaussian target(2, {1.0}, {0.5}, 0.0);
  expect_error(ErrorKind::kArgument, {"`force_dtype` bfloat16"},
               [&] { Estimator(options("bfloat16")).tune(target); });
  EXPECT_FALSE(Estimator(options("auto")).tune(target).state().forces);
  expect_error(ErrorKind::kArgument, {"`force_dtype`", "auto, float32, bfloat16"},
               [&] { Estimator(options("float16")).tune(target); });
}

TEST(ForceChoice, IsStored) {
  const TemporaryFolder folder;
  const auto target = make_target(Spoiling::kRounded);
  const auto run = [&](bool resume) {
    const ResultStore store(folder.path() / "out", {{"program", "test"}},
                            StoreOptions{resume, false, false});
    return run_problems(ProblemSource::of(target), Estimator(options("auto")), {.store = &store});
  };
  EXPECT_EQ(run(false).state.forces, at::kBFloat16);
  EXPECT_EQ(run(true).state.forces, at::kBFloat16);
}

}  // namespace
}  // namespace crais
