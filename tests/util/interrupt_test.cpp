#include "util/interrupt.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace crais {
namespace {

// The rest raises signals, each in a child of its own; 0 is the child's word that all was right.
void expect_flag_after(int signal) {
  install_interrupt_handler();
  const bool before = interrupted();
  ::raise(signal);
  ::_exit(!before && interrupted() ? 0 : 1);
}

void raise_twice(int first, int second, unsigned microseconds_between) {
  install_interrupt_handler();
  ::raise(first);
  ::usleep(microseconds_between);
  ::raise(second);
  ::_exit(interrupted() ? 0 : 1);
}

TEST(InterruptDeathTest, TheSecondSignalLeavesAtOnce) {
  for (const int first : {SIGINT, SIGTERM, SIGHUP})
    for (const int second : {SIGINT, SIGTERM, SIGHUP})
      EXPECT_EXIT(raise_twice(first, second, 150'000), ::testing::ExitedWithCode(75), "");
}

TEST(InterruptDeathTest, OneKeystrokeDeliveredTwiceIsOne) {
  EXPECT_EXIT(raise_twice(SIGINT, SIGINT, 0), ::testing::ExitedWithCode(0), "");
}

void expect_no_flag_after_ignored(int signal) {
  ::signal(signal, SIG_IGN);
  install_interrupt_handler();
  ::raise(signal);
  ::_exit(interrupted() ? 1 : 0);
}

TEST(InterruptDeathTest, SignalsSetTheFlagAndSomeMayBeIgnored) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1})
    EXPECT_EXIT(expect_flag_after(signal), ::testing::ExitedWithCode(0), "");
  for (const int signal : {SIGHUP, SIGUSR1})
    EXPECT_EXIT(expect_no_flag_after_ignored(signal), ::testing::ExitedWithCode(0), "");
}

TEST(InterruptDeathTest, AWarningIsNotTheFirstOfTwoSignals) {
  for (const int second : {SIGINT, SIGTERM, SIGHUP, SIGUSR1})
    EXPECT_EXIT(raise_twice(SIGUSR1, second, 150'000), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(raise_twice(SIGTERM, SIGUSR1, 150'000), ::testing::ExitedWithCode(0), "");
}

void never_look(bool saves) {
  install_interrupt_handler();
  ::raise(SIGTERM);
  if (saves) lift_deadline();
  ::usleep(2'000'000);
  ::_exit(0);
}

TEST(InterruptDeathTest, WorkThatNeverLooksEndsWithinTwoSecondsUnlessItSaves) {
  EXPECT_EXIT(never_look(false), ::testing::ExitedWithCode(75), "unfinished work is lost");
  EXPECT_EXIT(never_look(true), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace crais
