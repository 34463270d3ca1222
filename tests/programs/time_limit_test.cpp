#include <gtest/gtest.h>

#include "programs/run_program.h"

namespace crais {
namespace {

class Recording : public RunObserver {
 public:
  void begin(int64_t, int64_t) override { ++heard; }
  void chunk(const ChunkResult&) override { ++heard; }
  bool stop() override { return stops; }
  int heard = 0;
  bool stops = false;
};

struct LimitedRun {
  Recording inner;
  double now = 0;
  TimeLimit limit{inner, 10.0, [this] { return now; }};

  /// True if a chunk of so many seconds was let begin.
  bool chunk(double seconds) {
    if (limit.stop()) return false;
    now += seconds;
    limit.chunk({});
    return true;
  }
};

TEST(TimeLimit, StopsBeforeAChunkThatWouldEndTooLate) {
  LimitedRun run;
  EXPECT_TRUE(run.chunk(4));
  EXPECT_TRUE(run.chunk(3));   // begun at 4, and the longest takes 4
  EXPECT_FALSE(run.chunk(1));  // at 7
  EXPECT_TRUE(run.limit.is_over());
  EXPECT_TRUE(run.limit.has_advanced());
}

TEST(TimeLimit, AfterALongPilotNoChunkBegins) {
  LimitedRun run;
  run.now = 10;
  EXPECT_FALSE(run.chunk(1));
  EXPECT_TRUE(run.limit.is_over());
  EXPECT_FALSE(run.limit.has_advanced());
}

TEST(TimeLimit, ChunksOfTheStoreSayNothing) {
  LimitedRun run;
  run.now = 9;
  run.limit.chunk({});
  EXPECT_FALSE(run.limit.has_advanced());
  EXPECT_TRUE(run.chunk(0.5));
}

TEST(TimeLimit, EachThreadHasItsOwnChunk) {
  LimitedRun run;
  EXPECT_FALSE(run.limit.stop());
  run.now = 3;
  std::thread([&] { EXPECT_TRUE(run.chunk(1)); }).join();  // 3 to 4
  run.now = 8;
  EXPECT_FALSE(run.limit.stop());  // the longest is 1
  run.limit.chunk({});
  run.now = 9.5;
  EXPECT_TRUE(run.limit.stop());
}

TEST(TimeLimit, WithoutALimitTheOtherObserverDecides) {
  Recording inner;
  TimeLimit limit(inner, {}, [] { return 1e9; });
  EXPECT_FALSE(limit.stop());
  inner.stops = true;
  EXPECT_TRUE(limit.stop());
  EXPECT_FALSE(limit.is_over());
  limit.begin(0, 1);
  limit.chunk({});
  EXPECT_EQ(inner.heard, 2);
}

}  // namespace
}  // namespace crais
