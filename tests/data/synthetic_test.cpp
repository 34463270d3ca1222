#include <gtest/gtest.h>

#include "data/images.h"

namespace crais {
namespace {

TEST(Synthetic, EachImageDependsOnSeedAndIndexAlone) {
  const Images many = synthetic_images(200, 5), few = synthetic_images(20, 5);
  EXPECT_TRUE(at::equal(many.pixels.slice(0, 0, 20), few.pixels));
  EXPECT_TRUE(at::equal(many.labels->slice(0, 0, 20), *few.labels));
  EXPECT_NE(many.md5, few.md5);
  EXPECT_EQ(few.md5, synthetic_images(20, 5).md5);
  const Images other = synthetic_images(20, 6);
  for (int64_t i = 0; i < 20; ++i) EXPECT_FALSE(at::equal(few.pixels[i], other.pixels[i])) << i;
}

TEST(Synthetic, NeverChanges) {
  // Checkpoints record this digest as the data that they were trained on.
  EXPECT_EQ(synthetic_images(1000, 1).md5, "859a99b60fd7d6c8a649dfccbadb73d9");
}

}  // namespace
}  // namespace crais
