#include <gtest/gtest.h>

#include "io/zip.h"
#include "support/expect_error.h"
#include "support/idx_files.h"

namespace crais {
namespace {

using testing::gzip;

TEST(Gzip, RefusesABomb) {
  const size_t most = size_t{64} << 20;
  const std::string small = gzip(std::string(most, '\0')), bomb = gzip(std::string(most + 1, '\0'));
  EXPECT_LT(bomb.size(), 100'000U);
  EXPECT_EQ(gunzip(small, "FILE").size(), most);
  expect_error(ErrorKind::kData, {"FILE: unpacks to over 67108864 bytes"},
               [&] { gunzip(bomb, "FILE"); });
}

TEST(Gzip, ALargeFileMayUnpackToAHundredTimes) {
  EXPECT_EQ(most_unpacked(0), uint64_t{64} << 20);
  EXPECT_EQ(most_unpacked(10'000'000), 1'000'000'000U);
}

}  // namespace
}  // namespace crais
