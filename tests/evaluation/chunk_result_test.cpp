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
  EXPECT_EQ(to_run(found, 3).flags, (std::vector<int64_t>{0, 0, kApart}));
  EXPECT_EQ(flag_words(kApart | kFewEffective), "ess+gap");
}

}  // namespace
}  // namespace crais
