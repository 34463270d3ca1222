#include "evaluation/chunk_result.h"

#include <gtest/gtest.h>

namespace crais {
namespace {

TEST(ChunkRun, FlagsBoundsThatStandApart) {
  MethodResult found;
  const at::Tensor wiggle = at::linspace(-0.05, 0.05, 8, at::kDouble);
  found.log_w = at::tensor({-80.0, -80.0, -80.0}, at::kDouble).unsqueeze(1) + wiggle;
  found.reverse_log_w = at::tensor({80.0, 79.1, 78.9}, at::kDouble).unsqueeze(1) + wiggle;
  found.estimate = log_normalizer(found.log_w);
  EXPECT_EQ(to_run(found, 3).flags, (std::vector<int64_t>{0, 0, 0}));
  found.upper = reverse_log_normalizer(found.reverse_log_w);
  EXPECT_EQ(to_run(found, 3).flags, (std::vector<int64_t>{0, 0, kGap}));
  EXPECT_EQ(flag_words(kGap | kFewEffective), "ess+gap");
}

TEST(ChunkRun, FlagsChainsThatStayApart) {
  MethodResult found;
  found.estimate = log_normalizer(at::zeros({3, 2}, at::kDouble));
  found.distance = at::tensor({0.0, 1.0, 0.0, INFINITY, 3.0, 0.0}, at::kDouble).view({3, 2});
  const ChunkRun run = to_run(found, 3);
  EXPECT_EQ(run.distance, (ChunkRun::Column{0.5, 1, 1}));
  EXPECT_EQ(run.distance_std_error, (ChunkRun::Column{0.5, 0, 0}));
  EXPECT_EQ(run.met, (ChunkRun::Column{1, 0.5, 1}));
  EXPECT_EQ(run.flags, (std::vector<int64_t>{0, kApart, kApart}));
}

}  // namespace
}  // namespace crais
