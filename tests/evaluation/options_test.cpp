#include "evaluation/options.h"

#include <gtest/gtest.h>

#include <functional>

#include "evaluation/estimator.h"
#include "evaluation/parts.h"
#include "support/expect_error.h"

namespace crais {
namespace {

TEST(EstimateOptions, DefaultsAreFit) { EXPECT_NO_THROW(Estimator{EstimateOptions{}}); }

TEST(EstimateOptions, EachIsCheckedAndNamed) {
  const std::vector<std::pair<std::string, std::function<void(EstimateOptions&)>>> bad = {
      {"`methods`", [](auto& o) { o.methods.clear(); }},
      {"`methods`",
       [](auto& o) {
         o.methods = {"ais", "ais"};
       }},
      {"'warp'", [](auto& o) { o.methods = {"warp"}; }},
      {"'warp'", [](auto& o) { o.base = "warp"; }},
      {"'warp'", [](auto& o) { o.schedule = "warp"; }},
      {"`chains`", [](auto& o) { o.chains = 0; }},
      {"`budget`", [](auto& o) { o.budget = 0; }},
      {"`budget`", [](auto& o) { o.budget = 1e30; }},
      {"`max_evaluations`", [](auto& o) { o.max_evaluations = 1.8e19; }},
      {"`target_error`", [](auto& o) { o.target_error = -1; }},
      {"`target_error`", [](auto& o) { o.budget = 100, o.target_error = 0.1; }},
      {"`plan_per_problem`", [](auto& o) { o.budget = 100, o.plan_per_problem = true; }},
      {"not 2",
       [](auto& o) {
         o.budget = 100, o.methods = {"ais", "bidirectional"};
       }},
      {"`repeats`", [](auto& o) { o.repeats = 0; }},
      {"'warp'", [](auto& o) { o.expectations = {"warp"}; }},
      {"given twice",
       [](auto& o) {
         o.expectations = {"norm", "norm"};
       }},
      {"`target_error`", [](auto& o) { o.target_error = 0.1, o.expectations = {"norm"}; }},
      {"`target_error`", [](auto& o) { o.target_error = 0.1, o.keep_particles = true; }},
      {"`expectations`",
       [](auto& o) {
         o.methods = {"ais", "iwae"}, o.expectations = {"norm"};
       }},
      {"`keep_particles`", [](auto& o) { o.methods = {"elbo"}, o.keep_particles = true; }},
      {"`steps`", [](auto& o) { o.steps = 0; }},
      {"`step_size`", [](auto& o) { o.step_size = 0; }},
      {"`target_acceptance`", [](auto& o) { o.target_acceptance = 1; }},
      {"`pilot_chains`", [](auto& o) { o.pilot_chains = 1; }},
      {"`min_step`", [](auto& o) { o.min_step = 0.2; }},
      {"`max_step`", [](auto& o) { o.max_step = 1.5; }},
      {"`interpolate`", [](auto& o) { o.interpolate = 0; }},
      {"`chunk`", [](auto& o) { o.chunk = 0; }},
      {"`path`", [](auto& o) { o.methods = {"mcd"}, o.path = "power:0.5"; }},
      {"`resampling`", [](auto& o) { o.methods = {"mcd"}, o.resampling = "systematic"; }}};
  for (const auto& [name, spoil] : bad) {
    EstimateOptions options;
    spoil(options);
    expect_error(ErrorKind::kArgument, {name}, [&] { Estimator{options}; });
  }
}

TEST(EstimateOptions, PilotsHaveAsManyChainsAsTheEstimateUpToABound) {
  EstimateOptions options;
  EXPECT_EQ(EstimatorParts(options).pilot.num_particles, options.chains);
  options.chains = 1;
  EXPECT_EQ(EstimatorParts(options).pilot.num_particles, 2);
  options.schedule = "cess:0.9";  // particles decide
  EXPECT_EQ(EstimatorParts(options).pilot.num_particles, 16);
  options.chains = 100000;
  EXPECT_EQ(EstimatorParts(options).pilot.num_particles, 256);
  options.pilot_chains = 7;
  EXPECT_EQ(EstimatorParts(options).pilot.num_particles, 7);
}

}  // namespace
}  // namespace crais
