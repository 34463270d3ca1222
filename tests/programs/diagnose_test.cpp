#include <gtest/gtest.h>

#include <functional>

#include "programs/eval_loglik/commands.h"
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
            {"budget", nullptr}}},
          {"images", {{"count", 4}}}};
}

/// Four images that are all well: spread over images 10, errors of the chains 0.1.
EvalResults results() {
  EvalResults all{.num_pixels = 784};
  all.chunks[0].indices = {10, 20, 30, 40};
  ChunkRun found{.method = "ais",
                 .log_normalizer = {-70, -80, -90, -100},
                 .std_error = {0.1, 0.1, 0.1, 0.1},
                 .bias = {-0.01, -0.01, -0.01, -0.01},
                 .ess = {0.8, 0.8, 0.8, 0.8},
                 .pareto_k = {0.2, 0.2, 0.2, 0.2},
                 .accept_prob = {0.7, 0.7, 0.7, 0.7},
                 .evaluations = {784, 784, 784, 784},
                 .flags = {0, 0, 0, 0},
                 .cost = {4 * 784, 4 * 784}};
  all.chunks[0].runs = {found};
  all.state.plan = Plan{at::linspace(0, 1, 49, at::kDouble).unsqueeze(1),
                        at::full({48, 1}, 0.5, at::kDouble), 16};
  return all;
}

/// The only finding on results spoiled by `spoil`.
json finding(const std::function<void(ChunkRun&)>& spoil, const json& settings = run()) {
  EvalResults all = results();
  spoil(all.chunks[0].runs[0]);
  const json found = diagnose(all, settings);
  EXPECT_EQ(found.size(), 1U);
  return found.at(0);
}

bool says(const json& f, const std::string& part) {
  return sentence_of(f).find(part) != std::string::npos;
}

TEST(Diagnose, FindsNothingWhereAllIsWell) { EXPECT_TRUE(diagnose(results(), run()).empty()); }

TEST(Diagnose, NamesFlaggedImagesAndWhatTheRemedyCosts) {
  const json f = finding([](ChunkRun& r) { r.flags = {0, kFewEffective, 0, kFewEffective}; });
  EXPECT_EQ(f["images"], json({20, 40}));
  EXPECT_TRUE(says(f, "Images 20, 40. Remedy: ")) << sentence_of(f);
  EXPECT_TRUE(says(f, "--steps 192 (3,136 evaluations an image)")) << sentence_of(f);
  EXPECT_EQ(f["evaluations_per_image"], 4 * 784);
}

TEST(Diagnose, KnowsEveryFlag) {
  for (const auto& [flag, word] : all_flags()) {
    const json f = finding([bit = flag](ChunkRun& r) { r.flags[2] = bit; });
    EXPECT_EQ(f["images"], json({30})) << word;
    EXPECT_TRUE(says(f, "--steps 192")) << sentence_of(f);
  }
}

TEST(Diagnose, SeesWhatNoFlagSays) {
  const auto accept = [](double rate) {
    return [rate](ChunkRun& r) { r.accept_prob = {rate, rate, rate, rate}; };
  };
  json fixed = run(), few = run(), other = run();
  fixed["settings"]["step-size"] = "2.0";
  few["settings"]["chains"] = 3;
  other["images"]["binarisation_warning"] = "threshold in place of dynamic";
  struct Case {
    std::function<void(ChunkRun&)> spoil;
    const char* words;
    json settings = run();
  };
  const std::vector<Case> cases = {{[](ChunkRun& r) {
                                      r.bias = {-8, -8, -8, -8};
                                    },
                                    "8.0 nats too low"},
                                   {[](ChunkRun& r) {
                                      r.std_error = {6, 6, 6, 6};
                                    },
                                    "chains' error"},
                                   {accept(0.1), "too long"},
                                   {accept(0.1), "--step-size adapt", fixed},
                                   {accept(0.99), "too short", fixed},
                                   {[](ChunkRun&) {}, "--chains 12", few},
                                   {[](ChunkRun&) {}, "threshold in place of dynamic", other}};
  for (const Case& c : cases) EXPECT_TRUE(says(finding(c.spoil, c.settings), c.words)) << c.words;
}

TEST(Diagnose, RemediesAreFlagsThatTheRunTakes) {
  const auto few = [](ChunkRun& r) { r.std_error = {6, 6, 6, 6}; };
  const auto tail = [](ChunkRun& r) { r.flags[0] = kTail; };
  json budget = run(), adaptive = run();
  budget["settings"]["budget"] = 500;
  adaptive["settings"]["schedule"] = "constant-rate:30";
  EXPECT_TRUE(says(finding(few, budget), "--budget 2000"));
  EXPECT_TRUE(says(finding(tail, budget), "--budget 2000"));
  EXPECT_TRUE(says(finding(tail, adaptive), "a finer --schedule than constant-rate:30"));
}

TEST(Diagnose, SettingsAreHostile) {
  for (const json& spoiled : {json("many"), json(nullptr)}) {
    json bad = run();
    bad["settings"]["steps"] = spoiled;
    expect_error(ErrorKind::kData, {"steps"}, [&] { diagnose(results(), bad); });
  }
}

}  // namespace
}  // namespace crais
