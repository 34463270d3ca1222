#include "programs/eval_loglik/submit.h"

#include <gtest/gtest.h>

namespace crais {
namespace {

TEST(ShellQuoted, OnlyWhereItMust) {
  EXPECT_EQ(shell_quoted("results/a_1-b.c"), "results/a_1-b.c");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("my results"), "'my results'");
  EXPECT_EQ(shell_quoted("$HOME;`x`\"*\\"), "'$HOME;`x`\"*\\'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted("~"), "'~'");
}

TEST(ShellQuoted, AWordStaysOnOneLine) {
  EXPECT_EQ(shell_quoted("a\nEND_OF_TASK\n"), "$'a\\nEND_OF_TASK\\n'");
  EXPECT_EQ(shell_quoted("it's\\\n"), "$'it\\'s\\\\\\n'");
}

TEST(WorkingTime, LeavesAMarginBeforeTheWarning) {
  EXPECT_EQ(working_time(3'600), 3'300);          // a twelfth
  EXPECT_EQ(working_time(600), 480);              // at least two minutes
  EXPECT_EQ(working_time(86'400), 86'400 - 600);  // at most ten
  for (const int64_t seconds : {180, 1'000, 10'000, 1'000'000})
    EXPECT_LE(working_time(seconds), seconds - 2 * 60);
}

}  // namespace
}  // namespace crais
