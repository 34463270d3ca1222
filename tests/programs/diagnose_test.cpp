#include "programs/eval_loglik/diagnose.h"

#include <gtest/gtest.h>

#include <functional>

#include "support/expect_error.h"

namespace crais {
namespace {

using nlohmann::json;

json run() {
  return {{"settings",
           {{"steps", 48},
            {"chains", 16},
            {"max-evals", 1e5},
            {"schedule", "linear"},
            {"step-size", "adapt"},
            {"kernel", "ghmc:0.8"},
            {"budget", nullptr},
            {"mean-error", nullptr}}},
          {"images", {{"count", 4}}}};
}

/// Four images that are all well: spread over images 10, errors of the chains 0.1.
EvalResults results() {
  EvalResults all;
  all.num_pixels = 784;
  all.chunks[0].indices = {10, 20, 30, 40};
  ChunkRun found;
  found.method = "ais";
  found.log_normalizer = {-70, -80, -90, -100};
  found.std_error = {0.1, 0.1, 0.1, 0.1};
  found.bias = {-0.01, -0.01, -0.01, -0.01};
  found.ess = {0.8, 0.8, 0.8, 0.8};
  found.pareto_k = {0.2, 0.2, 0.2, 0.2};
  found.accept_prob = {0.7, 0.7, 0.7, 0.7};
  found.evaluations = {784, 784, 784, 784};
  found.flags = {0, 0, 0, 0};
  found.cost = {4 * 784, 4 * 784};
  all.chunks[0].runs = {found};
  all.state.plan = Plan{at::linspace(0, 1, 49, at::kDouble).unsqueeze(1),
                        at::full({48, 1}, 0.5, at::kDouble), 16};
  return all;
}

/// The only finding on results spoiled by `spoil`.
Finding finding(const std::function<void(ChunkRun&)>& spoil, const json& settings = run()) {
  EvalResults all = results();
  spoil(all.chunks[0].runs[0]);
  const std::vector<Finding> found = diagnose(all, settings);
  EXPECT_EQ(found.size(), 1U);
  return found.empty() ? Finding() : found.front();
}

bool says(const Finding& f, const std::string& part) {
  return sentence_of(f).find(part) != std::string::npos;
}

TEST(Diagnose, FindsNothingWhereAllIsWell) { EXPECT_TRUE(diagnose(results(), run()).empty()); }

TEST(Diagnose, NamesFlaggedImagesAndWhatTheRemedyCosts) {
  const Finding f = finding([](ChunkRun& r) { r.flags = {0, kFewEffective, 0, kFewEffective}; });
  EXPECT_EQ(f.images, (std::vector<int64_t>{20, 40}));
  EXPECT_TRUE(says(f, "--steps 192")) << sentence_of(f);
  EXPECT_DOUBLE_EQ(f.evaluations, 4 * 784);
}

TEST(Diagnose, KnowsEveryFlag) {
  for (const auto& [flag, word] : all_flags()) {
    const Finding f = finding([bit = flag](ChunkRun& r) { r.flags[2] = bit; });
    EXPECT_EQ(f.images, std::vector<int64_t>{30}) << word;
    EXPECT_FALSE(f.remedy.empty()) << word;
  }
}

TEST(Diagnose, SeesBoundsThatStandApart) {
  const auto apart = [](ChunkRun& r) {
    r.upper = {-69.9, -79.9, -85.0, -99.9};
    r.upper_std_error = {0.1, 0.1, 0.1, 0.1};
    r.flags = {0, 0, kApart, 0};
  };
  const Finding f = finding(apart);
  EXPECT_EQ(f.images, std::vector<int64_t>{30});
  EXPECT_TRUE(says(f, "bounds"));
  EXPECT_TRUE(says(f, "--chains 4 --steps 240 ")) << sentence_of(f);
  EXPECT_DOUBLE_EQ(f.evaluations, 784 * 1.25);
  json adaptive = run();
  adaptive["settings"]["schedule"] = "cess:0.9";
  EXPECT_TRUE(says(finding(apart, adaptive), "a finer --schedule than cess:0.9"));
}

TEST(Diagnose, SeesABiasThatCounts) {
  const Finding f = finding([](ChunkRun& r) { r.bias = {-8, -8, -8, -8}; });
  EXPECT_TRUE(f.images.empty());
  EXPECT_TRUE(says(f, "8.0 nats too low")) << sentence_of(f);
}

TEST(Diagnose, SeesChainsThatCountBesideTheImages) {
  EXPECT_TRUE(says(finding([](ChunkRun& r) { r.std_error = {6, 6, 6, 6}; }), "chains' error"));
}

TEST(Diagnose, SeesStepsOfTheWrongLength) {
  const auto accept = [](double rate) {
    return [rate](ChunkRun& r) { r.accept_prob = {rate, rate, rate, rate}; };
  };
  json fixed = run();
  fixed["settings"]["step-size"] = "2.0";
  EXPECT_TRUE(says(finding(accept(0.1), fixed), "--step-size adapt"));
  EXPECT_TRUE(says(finding(accept(0.99), fixed), "too short"));
  EXPECT_TRUE(says(finding(accept(0.1)), "too long"));
  EXPECT_TRUE(says(finding(accept(0.1)), "--leapfrog 2"));
  json other = run();
  other["settings"]["kernel"] = "mala";
  EXPECT_FALSE(says(finding(accept(0.1), other), "--leapfrog")) << "mala takes none";
}

TEST(Diagnose, SeesFewChainsProposalsAndAnotherBinarisation) {
  json few = run();
  few["settings"]["chains"] = 3;
  EXPECT_TRUE(says(finding([](ChunkRun&) {}, few), "--chains 8"));
  EXPECT_TRUE(says(finding([](ChunkRun& r) { r.num_nonfinite = 5; }), "5 proposals"));
  json other = run();
  other["images"]["binarisation_warning"] = "threshold in place of dynamic";
  EXPECT_TRUE(says(finding([](ChunkRun&) {}, other), "threshold in place of dynamic"));
}

TEST(Diagnose, AdaptiveSchedulesAreLongerByTheirParameter) {
  json adaptive = run();
  adaptive["settings"]["schedule"] = "constant-rate:30";
  EXPECT_TRUE(says(finding([](ChunkRun& r) { r.flags[0] = kTail; }, adaptive), "constant-rate:30"));
}

TEST(Diagnose, RemediesAreFlagsThatTheRunTakes) {
  const auto few = [](ChunkRun& r) { r.std_error = {6, 6, 6, 6}; };
  json budget = run(), error = run();
  budget["settings"]["budget"] = 500;
  error["settings"]["mean-error"] = 0.5;
  EXPECT_TRUE(says(finding(few, budget), "--budget 2000")) << sentence_of(finding(few, budget));
  EXPECT_TRUE(says(finding(few, error), "--mean-error 0.25"));
  EXPECT_TRUE(says(finding([](ChunkRun& r) { r.flags[0] = kTail; }, budget), "--budget 2000"));
}

TEST(Diagnose, SettingsAreHostile) {
  for (const json& spoiled : {json(-1), json("many"), json(nullptr), json(1e300)}) {
    json bad = run();
    bad["settings"]["steps"] = spoiled;
    expect_error(ErrorKind::kData, {"steps"}, [&] { diagnose(results(), bad); });
  }
}

}  // namespace
}  // namespace crais
