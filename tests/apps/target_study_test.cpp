#include "apps/target_study.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "support/temporary_folder.h"

namespace crais {
namespace {

class TargetStudies : public ::testing::Test {
 protected:
  TargetStudies() {
    options_.out = folder_.path();
    options_.quiet = true;
    options_.threads = 1;
  }

  int64_t num_cells() const {
    int64_t count = 0;
    for ([[maybe_unused]] const auto& entry :
         std::filesystem::directory_iterator(options_.out / "cells"))
      ++count;
    return count;
  }

  testing::TemporaryFolder folder_;
  ExperimentOptions options_;
};

TEST_F(TargetStudies, SetArmsSideBySide) {
  const TargetStudy study(options_, "u11", 3);
  const std::vector<Arm> arms = {
      {"linear", "--schedule linear --steps 6 --chains 8 --step-size 0.5"},
      {"never", "--schedule constant-rate:1e-6 --max-steps 5 --chains 8 --per-problem"},
      {"rate", "--schedule constant-rate:0.5 --chains 8 --per-problem --interpolate 9"}};
  const std::vector<ArmResult> results = study.run("arms", arms, /*seeds=*/2);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].value.sizes(), (std::vector<int64_t>{2, 3}));
  EXPECT_FALSE(at::equal(results[0].value[0], results[0].value[1]));
  EXPECT_EQ(results[0].estimating, 8 * 7);
  EXPECT_EQ(results[0].tuning, 0);
  EXPECT_EQ(results[0].transitions, 6);
  ASSERT_EQ(results[0].traces[0].betas.size(), 7u);
  EXPECT_NEAR(results[0].traces[0].betas[2], 2.0 / 6, 1e-15);
  EXPECT_NE(results[1].failed.find("--max-steps"), std::string::npos) << results[1].failed;
  EXPECT_EQ(results[2].failed, "");
  EXPECT_EQ(results[2].transitions, 9);
  EXPECT_GT(results[2].tuning, 0);
  EXPECT_EQ(num_cells(), 6);
}

TEST_F(TargetStudies, ComputeNothingTwice) {
  const std::vector<Arm> arms = {{"linear", "--steps 4 --chains 4 --step-size 0.5"}};
  const at::Tensor first = TargetStudy(options_, "u10", 2).run("first", arms)[0].value;
  const at::Tensor again = TargetStudy(options_, "u10", 2).run("again", arms)[0].value;
  EXPECT_TRUE(at::equal(first, again));
  EXPECT_EQ(num_cells(), 1);
  TargetStudy(options_, "u10", 3).run("more replicates", arms);
  TargetStudy(options_, "u10:s=std", 2).run("another target", arms);
  TargetStudy(options_, "u10", 2).run("another seed", arms, 1, 1);
  EXPECT_EQ(num_cells(), 4);
}

TEST_F(TargetStudies, TellTablesApartByWhatTheyHold) {
  const std::vector<Arm> arms = {{"linear", "--steps 4 --chains 4 --step-size 0.1"}};
  const std::string path = folder_.file("cases.csv", "1,3.5,a\n2,0.5,b\n4,1.5,a\n3,-1,b\n");
  TargetStudy(options_, "logistic-regression:" + path, 2).run("before", arms);
  folder_.file("cases.csv", "1,3.5,a\n2,0.5,b\n4,1.5,b\n3,-1,b\n");
  TargetStudy(options_, "logistic-regression:" + path, 2).run("after", arms);
  EXPECT_EQ(num_cells(), 2);
}

TEST(TargetErrors, AreOfTheSpread) {
  const TargetErrors e(at::tensor({1.0, 2.5, 4.0}, at::kDouble), 2.0);
  EXPECT_NEAR(e.bias, 0.5, 1e-15);
  EXPECT_NEAR(e.std_error, std::sqrt(2.25 / 3), 1e-14);
  EXPECT_NEAR(e.absolute, 3.5 / 3, 1e-15);
  EXPECT_NEAR(e.root_mean_square, std::sqrt(5.25 / 3), 1e-15);
}

}  // namespace
}  // namespace crais
