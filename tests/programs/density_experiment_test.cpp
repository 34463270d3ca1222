#include "programs/reproduce/density_experiment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "io/json.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "util/files.h"

namespace crais {
namespace {

class DensityExperiments : public ::testing::Test {
 protected:
  DensityExperiments() {
    options_.cells = folder_.path() / "cells";
    options_.quiet = true;
    options_.threads = 1;
  }

  int64_t num_cells() const {
    int64_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(options_.cells))
      ++count;
    return count;
  }

  testing::TemporaryFolder folder_;
  ExperimentOptions options_;
};

TEST_F(DensityExperiments, SetArmsSideBySide) {
  const DensityExperiment experiment(options_, "u11", 3);
  const std::vector<Variant> variants = {
      {"linear", "--schedule linear --steps 6 --chains 8 --step-size 0.5"},
      {"never", "--schedule constant-rate:1e-6 --max-steps 5 --chains 8 --per-problem"},
      {"rate", "--schedule constant-rate:0.5 --chains 8 --per-problem --interpolate 9"}};
  const std::vector<VariantResult> results = experiment.run("variants", variants, /*seeds=*/2);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].value.sizes(), (std::vector<int64_t>{2, 3}));
  EXPECT_FALSE(at::equal(results[0].value[0], results[0].value[1]));
  EXPECT_EQ(results[0].estimating, 8 * 7);
  EXPECT_EQ(results[0].tuning, 0);
  EXPECT_EQ(results[0].transitions, 6);
  ASSERT_EQ(results[0].traces[0].betas.size(), 7u);
  EXPECT_NEAR(results[0].traces[0].betas[2], 2.0 / 6, 1e-15);
  EXPECT_NE(results[1].failed.find("--max-steps"), std::string::npos) << results[1].failed;
  const std::string reason = results[1].or_reason("a number").text;
  EXPECT_EQ(reason.find("--max-steps"), std::string::npos) << reason;
  EXPECT_EQ(reason.find("the schedule has reached beta = "), 0u);
  EXPECT_EQ(results[1].failed.find(reason + ";"), 0u);
  EXPECT_TRUE(std::isnan(results[1].evaluations()));
  EXPECT_EQ(results[2].or_reason("a number").text, "a number");
  EXPECT_EQ(results[2].failed, "");
  EXPECT_EQ(results[2].transitions, 9);
  EXPECT_GT(results[2].tuning, 0);
  EXPECT_EQ(num_cells(), 6);
}

TEST_F(DensityExperiments, ComputeNothingTwice) {
  const std::vector<Variant> variants = {{"linear", "--steps 4 --chains 4 --step-size 0.5"}};
  const at::Tensor first = DensityExperiment(options_, "u10", 2).run("first", variants)[0].value;
  const at::Tensor again = DensityExperiment(options_, "u10", 2).run("again", variants)[0].value;
  EXPECT_TRUE(at::equal(first, again));
  EXPECT_EQ(num_cells(), 1);
  DensityExperiment(options_, "u10", 3).run("more replicates", variants);
  DensityExperiment(options_, "u10:s=std", 2).run("another target", variants);
  DensityExperiment(options_, "u10", 2).run("another seed", variants, 1, 1);
  EXPECT_EQ(num_cells(), 4);
}

TEST_F(DensityExperiments, RefuseDamagedCells) {
  const std::vector<Variant> variants = {{"linear", "--steps 4 --chains 4 --step-size 0.5"}};
  const DensityExperiment experiment(options_, "u10", 2);
  experiment.run("first", variants);
  const std::filesystem::path path = std::filesystem::directory_iterator(options_.cells)->path();
  nlohmann::json cell = read_json(path);
  cell["result"]["ess"][0] = 0.125;
  write_file_atomic(path, cell.dump());
  expect_error(ErrorKind::kData, {path.filename().string(), "is damaged", "delete it"},
               [&] { experiment.run("again", variants); });
  cell.erase("digest");
  write_file_atomic(path, cell.dump());
  expect_error(ErrorKind::kData, {path.filename().string(), "'digest' is missing"},
               [&] { experiment.run("again", variants); });
  cell["computed_by"] = "another version, which wrote no digest";
  write_file_atomic(path, cell.dump());
  expect_error(ErrorKind::kArgument, {"another build"}, [&] { experiment.run("again", variants); });
}

TEST_F(DensityExperiments, TellTablesApartByWhatTheyHold) {
  const std::vector<Variant> variants = {{"linear", "--steps 4 --chains 4 --step-size 0.1"}};
  const std::string path = folder_.file("cases.csv", "1,3.5,a\n2,0.5,b\n4,1.5,a\n3,-1,b\n");
  DensityExperiment(options_, "logistic-regression:" + path, 2).run("before", variants);
  folder_.file("cases.csv", "1,3.5,a\n2,0.5,b\n4,1.5,b\n3,-1,b\n");
  DensityExperiment(options_, "logistic-regression:" + path, 2).run("after", variants);
  EXPECT_EQ(num_cells(), 2);
}

TEST_F(DensityExperiments, LetMethodsLearnAndCountIt) {
  const DensityExperiment experiment(options_, "laplace:2", 2);
  const VariantResult result = experiment.run(
      "mcd", {{"mcd", "--method mcd:3,iterations=2,hidden=4,batch=4 --chains 8"}})[0];
  ASSERT_EQ(result.failed, "");
  EXPECT_EQ(result.estimating, 8 * 4);
  EXPECT_GT(result.tuning, 2 * 4 * 4);
  EXPECT_GT(result.training_seconds, 0);
}

TEST_F(DensityExperiments, KeepTheDtypeThatTheFlagsSay) {
  const DensityExperiment experiment(options_, "laplace:40", 1);
  const std::string flags = "--steps 4 --chains 4 --step-size 0.1 --dtype ";
  const auto results =
      experiment.run("dtypes", {{"32", flags + "float32"}, {"64", flags + "float64"}});
  EXPECT_NE(results[0].value.item<double>(), results[1].value.item<double>());
  EXPECT_EQ(num_cells(), 2);
}

TEST_F(DensityExperiments, TellOfThePilotsDivergence) {
  const VariantResult result =
      DensityExperiment(options_, "normal:2,mean=1,sd=0.5", 2)
          .run("pilot", {{"a", "--steps 20 --chains 200 --per-problem"}})[0];
  const std::vector<double>& divergence = result.traces[0].divergence;
  ASSERT_EQ(divergence.size(), 21u);
  EXPECT_NEAR(divergence[0], 2 * (std::log(0.5) + 0.5 * 2 / 0.25 - 0.5), 1.5);
  EXPECT_NEAR(divergence[20], 0, 1e-12);
}

}  // namespace
}  // namespace crais
