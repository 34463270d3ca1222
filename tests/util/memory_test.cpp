#include "util/memory.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/expect_error.h"

namespace crais {
namespace {

TEST(Memory, SaysSizes) {
  EXPECT_EQ(size_text(int64_t{200} << 20), "200 MiB");
  EXPECT_EQ(size_text((int64_t{200} << 20) + 1), "201 MiB");
  EXPECT_EQ(size_text(int64_t{3} << 29), "1.5 GiB");
  EXPECT_EQ(size_text(int64_t{5} << 39), "2.5 TiB");
}

TEST(Memory, RefusesWhatNoMachineHolds) {
  EXPECT_GT(physical_memory(), int64_t{64} << 20);
  EXPECT_NO_THROW(require_memory(1e6, "`things`"));
  expect_error(ErrorKind::kArgument, {"`things` take 909494.7 TiB, and this machine has"},
               [] { require_memory(1e18, "`things`"); });
  EXPECT_THROW(require_memory(INFINITY, "`things`"), Error);
}

}  // namespace
}  // namespace crais
