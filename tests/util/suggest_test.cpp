#include "util/suggest.h"

#include <gtest/gtest.h>

namespace crais {
namespace {

const std::vector<std::string> kNames = {"schedule", "seed",      "shard",
                                         "split",    "step-size", "steps"};

TEST(Suggest, FindsMisspeltNames) {
  EXPECT_EQ(nearest("scheduel", kNames), "schedule");  // two letters swapped
  EXPECT_EQ(nearest("sed", kNames), "seed");           // one missing
  EXPECT_EQ(nearest("sharrd", kNames), "shard");       // one too many
  EXPECT_EQ(nearest("slpit", kNames), "split");
  EXPECT_EQ(nearest("step_size", kNames), "step-size");
}

TEST(Suggest, IsSilentWhereNothingIsNear) {
  EXPECT_EQ(nearest("temperature", kNames), std::nullopt);
  EXPECT_EQ(nearest("", kNames), std::nullopt);
  EXPECT_EQ(nearest("seed", {}), std::nullopt);
  EXPECT_EQ(nearest(std::string(8'000'000, 's'), kNames), std::nullopt);  // at once
  EXPECT_EQ(did_you_mean("temperature", kNames, "--"), "");
}

TEST(Suggest, WritesTheQuestion) {
  EXPECT_EQ(did_you_mean("stepss", kNames, "--"), "; did you mean --steps?");
}

}  // namespace
}  // namespace crais
