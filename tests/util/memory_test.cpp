#include "util/memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace crais {
namespace {

TEST(Memory, SaysSizes) {
  EXPECT_EQ(size_text(int64_t{200} << 20), "200 MiB");
  EXPECT_EQ(size_text((int64_t{200} << 20) + 1), "201 MiB");
  EXPECT_EQ(size_text(int64_t{3} << 29), "1.5 GiB");
}

TEST(Memory, PeakOnlyGrows) {
  const int64_t before = peak_memory();
  const std::vector<char> block(size_t{64} << 20, 'x');
  EXPECT_GE(peak_memory(), before);
  EXPECT_GE(peak_memory(), int64_t{64} << 20);
  EXPECT_EQ(block.back(), 'x');
}

}  // namespace
}  // namespace crais
