#include "io/npy.h"

#include <gtest/gtest.h>

#include <cstring>

#include "support/expect_error.h"

namespace crais {
namespace {

TEST(Npy, IsTheFormatToTheByte) {
  const std::string text = npy_text({2, 3}, {1, 2, 3, 4, 5, -0.5});
  ASSERT_EQ(text.size(), 128U + 48U);
  EXPECT_EQ(text.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  const std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3, ), }";
  EXPECT_EQ(text.substr(10, header.size()), header);
  EXPECT_EQ(text.substr(10 + header.size(), 118 - header.size() - 1),
            std::string(118 - header.size() - 1, ' '));
  EXPECT_EQ(text[127], '\n');
  double last = 0;
  std::memcpy(&last, text.data() + 128 + 40, sizeof last);
  EXPECT_EQ(last, -0.5);
}

TEST(Npy, RefusesAShapeThatIsNotItsSize) {
  expect_error(ErrorKind::kInternal, {"shape"}, [] { npy_text({2, 2}, {1, 2, 3}); });
  EXPECT_EQ(npy_text({0, 3}, {}).size(), 128U);
}

}  // namespace
}  // namespace crais
