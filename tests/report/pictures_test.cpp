#include "report/pictures.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "support/scratch.h"
#include "util/files.h"

namespace crais {
namespace {

uint32_t big_endian(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

struct Png {
  uint32_t width = 0, height = 0;
  std::string pixels;  // row by row
};

/// The pixels of an 8-bit grey PNG.
Png decoded(const std::string& bytes) {
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x89PNG\r\n\x1a\n", 8));
  Png png{big_endian(bytes, 16), big_endian(bytes, 20), ""};
  EXPECT_EQ(bytes[24], 8);  // bits
  EXPECT_EQ(bytes[25], 0);  // grey
  std::string packed;
  for (size_t at = 8; at + 12 <= bytes.size(); at += 12 + big_endian(bytes, at))
    if (bytes.substr(at + 4, 4) == "IDAT") packed += bytes.substr(at + 8, big_endian(bytes, at));
  const size_t stride = png.width + 1;
  std::string raw(stride * png.height, '\0');
  uLongf size = raw.size();
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(raw.data()), &size,
                       reinterpret_cast<const Bytef*>(packed.data()), packed.size()),
            Z_OK);
  EXPECT_EQ(size, raw.size());
  // Undo the row filters.
  std::string above(png.width, '\0');
  for (size_t y = 0; y < png.height; ++y) {
    std::string row(png.width, '\0');
    for (size_t x = 0; x < png.width; ++x) {
      const int a = x > 0 ? static_cast<unsigned char>(row[x - 1]) : 0;
      const int b = static_cast<unsigned char>(above[x]);
      const int c = x > 0 ? static_cast<unsigned char>(above[x - 1]) : 0;
      const int p = a + b - c;
      const int da = std::abs(p - a), db = std::abs(p - b), dc = std::abs(p - c);
      const int paeth = da <= db && da <= dc ? a : db <= dc ? b : c;
      const int predictions[] = {0, a, b, (a + b) / 2, paeth};
      row[x] = static_cast<char>(raw[y * stride + 1 + x] +
                                 predictions[static_cast<size_t>(raw[y * stride])]);
    }
    png.pixels += row;
    above = row;
  }
  return png;
}

TEST(ImageGrid, LaysImagesOutRowByRow) {
  const testing::Scratch scratch;
  // Three images of 1 x 2 in two columns; values outside [0, 1] are clamped.
  const at::Tensor images = at::tensor({0.0, 0.2, 0.4, 1.0, -3.0, 7.0}).view({3, 2});
  write_image_grid(scratch.path() / "grid.png", images, 1, 2, 2);
  const Png png = decoded(read_file(scratch.path() / "grid.png"));
  ASSERT_EQ(png.width, 5U);
  ASSERT_EQ(png.height, 3U);
  const unsigned char expected[] = {0,   51,  128, 102, 255,  //
                                    128, 128, 128, 128, 128,  //
                                    0,   255, 128, 0,   0};
  for (size_t i = 0; i < 15; ++i)
    EXPECT_EQ(static_cast<unsigned char>(png.pixels[i]), expected[i]) << i;
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

TEST(Png, HasColours) {
  EXPECT_EQ(png_of(at::zeros({3, 5}, at::kByte))[25], 0);
  EXPECT_EQ(png_of(at::zeros({3, 5, 3}, at::kByte))[25], 2);
}

}  // namespace
}  // namespace crais
