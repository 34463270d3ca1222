#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <string>

#include "report/pictures.h"
#include "support/scratch.h"
#include "util/error.h"
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

TEST(ImageGrid, ATallGridOfRealisticSize) {
  const testing::Scratch scratch;
  const at::Tensor images = at::rand({25, 28 * 28});
  write_image_grid(scratch.path() / "grid.png", images, 28, 28, 10);
  const Png png = decoded(read_file(scratch.path() / "grid.png"));
  ASSERT_EQ(png.width, 289U);
  ASSERT_EQ(png.height, 86U);
  // Image 12 is the third of the second row.
  const at::Tensor grey = (images[12].view({28, 28}) * 255).round();
  for (int64_t y = 0; y < 28; ++y)
    for (int64_t x = 0; x < 28; ++x)
      ASSERT_EQ(
          static_cast<unsigned char>(png.pixels[static_cast<size_t>((29 + y) * 289 + 2 * 29 + x)]),
          grey[y][x].item<int>());
}

TEST(ImageGrid, AnUnwritablePlaceIsAnError) {
  expect_error(ErrorKind::kCannotCreate, {"/nowhere"}, [] {
    write_image_grid("/nowhere/grid.png", at::zeros({1, 4}), 2, 2, 1);
  });
}

}  // namespace
}  // namespace crais
