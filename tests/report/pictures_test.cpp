#include "report/pictures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "support/temporary_folder.h"
#include "util/files.h"

namespace crais {
namespace {

TEST(ImageGrid, LaysImagesOutRowByRow) {
  const testing::TemporaryFolder scratch;
  // Three images of 1 x 2 in two columns; values outside [0, 1] are clamped.
  const at::Tensor images = at::tensor({0.0, 0.2, 0.4, 1.0, -3.0, 7.0}).view({3, 2});
  write_image_grid(scratch.path() / "grid.png", images, 1, 2, 2);
  const at::Tensor expected = at::tensor({0, 51, 128, 102, 255,     //
                                          128, 128, 128, 128, 128,  //
                                          0, 255, 128, 0, 0},
                                         at::kByte);
  EXPECT_EQ(read_file(scratch.path() / "grid.png"), png_of(expected.view({3, 5})));
}

TEST(Thumbnails, TakePicturesOfAnyLayout) {
  const at::Tensor data = at::rand({2, 12});
  const at::Tensor grey = thumbnails_of(data, {3, 4});
  ASSERT_EQ(grey.sizes().vec(), (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(grey[1][2][3].item<int>(),
            static_cast<int>(std::lround(255 * data[1][11].item<double>())));
  const at::Tensor first = thumbnails_of(data, {3, 2, 2}), last = thumbnails_of(data, {2, 2, 3});
  ASSERT_EQ(first.sizes().vec(), (std::vector<int64_t>{2, 2, 2, 3}));
  ASSERT_EQ(last.sizes().vec(), first.sizes().vec());
  EXPECT_EQ(first[0][0][1][2].item<int>(), grey[0].flatten()[9].item<int>());
  EXPECT_EQ(last[0][0][1][2].item<int>(), grey[0].flatten()[5].item<int>());
  EXPECT_FALSE(thumbnails_of(data, {12}).defined());
  EXPECT_FALSE(thumbnails_of(at::zeros({2, 36}), {36}).defined());
  EXPECT_EQ(thumbnails_of(at::zeros({2, 784}), {784}).sizes(), at::IntArrayRef({2, 28, 28}));
  EXPECT_FALSE(thumbnails_of(data, {2, 3, 2}).defined());
}

TEST(Thumbnails, SpreadOtherRangesAndShrinkLargePictures) {
  const at::Tensor centred = at::tensor({-1.0F, 0.0F, 3.0F, 1.0F}).unsqueeze(0);
  EXPECT_TRUE(at::equal(thumbnails_of(centred, {2, 2}).flatten(),
                        at::tensor({0, 64, 255, 128}, at::kByte)));
  const at::Tensor large = thumbnails_of(at::full({1, 300 * 100}, 0.5F), {300, 100});
  EXPECT_EQ(large.sizes().vec(), (std::vector<int64_t>{1, kThumbnailSide, kThumbnailSide}));
  EXPECT_TRUE((large == 128).all().item<bool>());
}

TEST(Png, HasSizeAndColours) {
  const std::string grey = png_of(at::zeros({3, 5}, at::kByte));
  EXPECT_EQ(grey.substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_EQ(grey.substr(16, 10), std::string("\0\0\0\5\0\0\0\3\x8\0", 10));  // 8 bits, grey
  EXPECT_EQ(png_of(at::zeros({3, 5, 3}, at::kByte))[25], 2);
}

}  // namespace
}  // namespace crais
