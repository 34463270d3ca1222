#include "apps/memory.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/expect_error.h"

namespace crais {
namespace {

TEST(Memory, ReadsSizes) {
  EXPECT_EQ(parse_size("1024", "--m"), 1024);
  EXPECT_EQ(parse_size("3K", "--m"), 3 * 1024);
  EXPECT_EQ(parse_size("1.5G", "--m"), int64_t{3} << 29);
  EXPECT_EQ(parse_size("512MiB", "--m"), int64_t{512} << 20);
  EXPECT_EQ(parse_size("2GB", "--m"), int64_t{2} << 30);
  for (const char* bad : {"", "G", "1X", "-1G", "0", "1GG", "nan", "1e300", "1 G", "inf"})
    expect_error(ExitCode::kUsage, {"--m", "512M"}, [&] { parse_size(bad, "--m"); });
}

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

TEST(Memory, ThreadsFitIntoTheLimit) {
  constexpr int64_t kMega = int64_t{1} << 20;
  EXPECT_EQ(threads_within(1000 * kMega, 200 * kMega, 300 * kMega, 8), 2);
  EXPECT_EQ(threads_within(1000 * kMega, 200 * kMega, 10 * kMega, 8), 8);
  expect_error(ExitCode::kUsage, {"400 MiB", "201 MiB", "300 MiB", "502 MiB", "--chunk"},
               [] { threads_within(400 * kMega, 201 * kMega, 300 * kMega, 8); });
  expect_error(ExitCode::kUsage, {"ask for"},
               [] { threads_within(100 * kMega, 201 * kMega, 300 * kMega, 8); });
}

TEST(Memory, AChunkGrowsWithWhatItHolds) {
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
