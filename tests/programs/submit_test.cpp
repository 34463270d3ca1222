#include <gtest/gtest.h>

#include "programs/eval_loglik/commands.h"

namespace crais {
namespace {

TEST(WorkingTime, LeavesAMarginBeforeTheWarning) {
  EXPECT_EQ(working_time(3'600), 3'300);          // a twelfth
  EXPECT_EQ(working_time(600), 480);              // at least two minutes
  EXPECT_EQ(working_time(86'400), 86'400 - 600);  // at most ten
  for (const int64_t seconds : {180, 1'000, 10'000, 1'000'000})
    EXPECT_LE(working_time(seconds), seconds - 2 * 60);
}

}  // namespace
}  // namespace crais
