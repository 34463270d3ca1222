#include "evaluation/chunk_memory.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace crais {
namespace {

TEST(ChunkMemory, ThreadsFitIntoTheLimit) {
  constexpr int64_t kMega = int64_t{1} << 20;
  EXPECT_EQ(threads_within(1000 * kMega, 200 * kMega, 300 * kMega, 8), 2);
  EXPECT_EQ(threads_within(1000 * kMega, 200 * kMega, 10 * kMega, 8), 8);
  expect_error(ErrorKind::kArgument, {"400 MiB", "201 MiB", "300 MiB", "502 MiB", "`chunk`"},
               [] { threads_within(400 * kMega, 201 * kMega, 300 * kMega, 8); });
  expect_error(ErrorKind::kArgument, {"ask for"},
               [] { threads_within(100 * kMega, 201 * kMega, 300 * kMega, 8); });
}

TEST(ChunkMemory, NumbersOfChainsAreRefusedBeforeTheyTakeIt) {
  require_moving(256, 16, 50, "pilot_chains");
  require_moving(1000, 64, 50);
  require_weights(100'000, 64);
  constexpr int64_t kMost = 1'000'000'000;
  expect_error(ErrorKind::kArgument, {"`pilot_chains`: 1,000,000,000 chains of 16 problems", "TiB"},
               [] { require_moving(kMost, 16, 50, "pilot_chains"); });
  expect_error(ErrorKind::kArgument, {"`chains`", "of 1 problem take", "this machine has"},
               [] { require_moving(kMost, 1, 100'000); });
  expect_error(ErrorKind::kArgument, {"`budget`", "ask for fewer"},
               [] { require_weights(1'000'000 * kMost, 1, "budget"); });
}

TEST(ChunkMemory, AChunkGrowsWithWhatItHolds) {
  const ChunkShape small{8, 12800, 50, 4, 1000};
  ChunkShape many = small, wide = small, few = small;
  many.particles *= 10;
  wide.bytes_per_number = 8;
  few.problems = 8000;
  EXPECT_GT(chunk_memory(many), 9 * (chunk_memory(small) - 1000));
  EXPECT_GT(chunk_memory(wide), chunk_memory(small));
  EXPECT_GE(chunk_memory(few), int64_t{8} * 8000 * 50 * 50);
}

}  // namespace
}  // namespace crais
