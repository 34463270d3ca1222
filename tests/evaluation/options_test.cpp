#include "evaluation/options.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "evaluation/estimator.h"
#include "evaluation/option_table.h"
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
      {"`budget`", [](auto& o) { o.budget = NAN; }},
      {"`force_dtype`", [](auto& o) { o.force_dtype = "float16"; }},
      {"`max_evaluations`", [](auto& o) { o.max_evaluations = 1.8e19; }},
      {"`error`", [](auto& o) { o.error = -1; }},
      {"`error`", [](auto& o) { o.budget = 100, o.error = 0.1; }},
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
      {"`expectations`",
       [](auto& o) {
         o.methods = {"ais", "iwae"}, o.expectations = {"norm"};
       }},
      {"`save_particles`", [](auto& o) { o.methods = {"elbo"}, o.keep_particles = true; }},
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

TEST(EstimateOptions, GoToJsonAndBack) {
  EstimateOptions options;
  options.methods = {"ais", "elbo"};
  options.budget = 0.1;
  options.seed = 1ULL << 63;
  options.interpolate = 7;
  options.plan_per_problem = options.witness = true;
  options.resampling = "systematic";
  options.expectations = {"norm"};
  EstimateOptions back;
  for (const OptionRow& row : option_table()) set_value(row, value_of(row, options), back);
  EXPECT_EQ(to_json(back), to_json(options));
  EXPECT_EQ(to_json(back).at("seed"), 1ULL << 63);
  EXPECT_EQ(back.budget, 0.1);
  // What decides nothing by default is not there, lest older records differ.
  EXPECT_TRUE(to_json(back).contains("witness"));
  const nlohmann::json plain = to_json(EstimateOptions());
  EXPECT_FALSE(plain.contains("witness") || plain.contains("expectations"));
  EXPECT_EQ(plain.at("budget"), nlohmann::json());
}

TEST(EstimateOptions, ANumberMayBeAText) {
  EstimateOptions options;
  const OptionRow& row = option_row("step_size");
  set_value(row, "0.5", options);
  EXPECT_EQ(options.step_size, 0.5);
  set_value(row, "adapt", options = {});
  EXPECT_EQ(options.step_size, std::nullopt);
  expect_error(ErrorKind::kArgument, {"`step_size`", "'x' is not a number"},
               [&] { set_value(row, "x", options); });
}

TEST(EstimateOptions, EachHasOneFlag) {
  std::set<std::string> flags;
  for (const OptionRow& row : option_table()) flags.insert(flag_of(row.name, "image"));
  EXPECT_EQ(flags.size(), option_table().size());
  EXPECT_EQ(flag_of("pilot_problems", "image"), "pilot-images");
  EXPECT_EQ(of_problem("a PROBLEM, as PROBLEMs", "image"), "an image, as images");
  EXPECT_EQ(of_problem("a PROBLEM", "problem"), "a problem");
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
