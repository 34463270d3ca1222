#include "evaluation/chunk_memory.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace crais {
namespace {

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
  require_temperatures(100'000, 100);
  expect_error(ErrorKind::kArgument, {"`steps`: 1,000,000,000 temperatures", "TiB"},
               [] { require_temperatures(kMost, 1); });
}

}  // namespace
}  // namespace crais
