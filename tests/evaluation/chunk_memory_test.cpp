#include "evaluation/chunk_memory.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace crais {
namespace {

TEST(ChunkMemory, NumbersOfChainsAreRefusedBeforeTheyTakeIt) {
  require_pilot_chains(256, 16, 50);
  require_chains_together(1000, 64, 50);
  require_weights(100'000, 64);
  constexpr int64_t kMost = 1'000'000'000;
  expect_error(ErrorKind::kArgument, {"`pilot_chains`: 1,000,000,000 chains of 16 problems", "TiB"},
               [] { require_pilot_chains(kMost, 16, 50); });
  expect_error(ErrorKind::kArgument, {"`chains`", "of 1 problem take", "this machine has"},
               [] { require_chains_together(kMost, 1, 100'000); });
  expect_error(ErrorKind::kArgument, {"`budget`", "ask for fewer"},
               [] { require_weights(1'000'000 * kMost, 1, "budget"); });
}

}  // namespace
}  // namespace crais
