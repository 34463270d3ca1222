#include <gtest/gtest.h>

#include "io/mnist_files.h"
#include "support/expect_error.h"
#include "support/idx_files.h"
#include "support/temporary_folder.h"
#include "util/digest.h"

namespace crais {
namespace {

using testing::gzip;
using testing::idx_header;
using testing::idx_images;
using testing::idx_labels;
using testing::TemporaryFolder;

TEST(Idx, ReadsImages) {
  const TemporaryFolder folder;
  const IdxArray array = read_idx_images(folder.file("images", idx_images(3, 2, 5)));
  ASSERT_EQ(array.values.sizes(), (std::vector<int64_t>{3, 2, 5}));
  EXPECT_EQ(array.values.scalar_type(), at::kByte);
  EXPECT_EQ(array.values[0][0][0].item<int>(), 0);
  EXPECT_EQ(array.values[2][1][4].item<int>(), 29);
  EXPECT_EQ(array.md5, md5(idx_images(3, 2, 5)));
}

TEST(Idx, CompressedIsTheSameWhateverItsName) {
  const TemporaryFolder folder;
  const std::string plain = idx_images(40, 28, 28);
  const IdxArray expected = read_idx_images(folder.file("plain", plain));
  for (const std::string name : {"images.gz", "images"}) {
    const IdxArray array = read_idx_images(folder.file(name, gzip(plain)));
    EXPECT_TRUE(at::equal(array.values, expected.values));
    EXPECT_EQ(array.md5, expected.md5);
  }
  // Plain bytes under a name that ends in .gz, as browsers leave them.
  EXPECT_TRUE(at::equal(read_idx_images(folder.file("p.gz", plain)).values, expected.values));
}

TEST(Idx, ConcatenatedGzipMembersAreOneFile) {
  const TemporaryFolder folder;
  const std::string plain = idx_images(4, 3, 3);
  const auto path = folder.file("two.gz", gzip(plain.substr(0, 20)) + gzip(plain.substr(20)));
  EXPECT_EQ(read_idx_images(path).md5, md5(plain));
}

struct BadFile {
  std::string what;
  std::string content;
  std::vector<std::string> words;
};

class IdxBadFile : public ::testing::TestWithParam<BadFile> {};

TEST_P(IdxBadFile, IsADataErrorThatSaysWhy) {
  const TemporaryFolder folder;
  const auto path = folder.file("images.gz", GetParam().content);
  for (const auto& word : GetParam().words)
    expect_error(ErrorKind::kData, {path, word}, [&] { read_idx_images(path); });
}

std::string with_byte(std::string bytes, size_t position, char value) {
  bytes[position] = value;
  return bytes;
}

const std::string kGood = idx_images(5, 4, 4);
const std::string kGoodGz = gzip(kGood);

INSTANTIATE_TEST_SUITE_P(
    All, IdxBadFile,
    ::testing::Values(
        BadFile{"Empty", "", {"truncated", "0 bytes"}},
        BadFile{"ThreeBytes", kGood.substr(0, 3), {"truncated", "3 bytes"}},
        BadFile{"HalfAHeader", kGood.substr(0, 9), {"truncated within its header", "9 of 16"}},
        BadFile{"Text", "<html>Not found</html>", {"not an IDX file", "3c68746d", "00000803"}},
        BadFile{"Floats", with_byte(kGood, 2, 0x0d), {"type 0x0d", "unsigned bytes"}},
        BadFile{"Labels", idx_labels(5), {"1 dimensions", "00000801", "00000803"}},
        BadFile{"NoImages", idx_header(0x803, {0, 28, 28}), {"empty", "0 items"}},
        BadFile{"NoPixels", idx_header(0x803, {5, 0, 28}), {"empty", "0 pixels"}},
        BadFile{"Overflow",
                idx_header(0x803, {0xffffffff, 0xffffffff, 0xffffffff}),
                {"impossible size"}},
        // 2^32 * 2^32 = 2^64 values wrap to 0 where nobody looks.
        BadFile{
            "OverflowToZero", idx_header(0x803, {0x80000000, 0x80000000, 4}), {"impossible size"}},
        BadFile{"HugeClaim", idx_header(0x803, {0x7fffffff, 1000, 1000}), {"truncated", "16 are"}},
        BadFile{"OneShort",
                kGood.substr(0, kGood.size() - 1),
                {"truncated", "5 x 4 x 4", "96 bytes", "95 are there"}},
        BadFile{"OneLong", kGood + "x", {"junk after", "96 bytes were expected"}},
        BadFile{"GzOneShort", gzip(kGood.substr(0, kGood.size() - 1)), {"truncated", "95 are"}},
        BadFile{"GzOneLong", gzip(kGood + "x"), {"junk after"}},
        BadFile{"GzHugeClaim", gzip(idx_header(0x803, {0x7fffffff, 1000, 1000})), {"truncated"}},
        BadFile{"GzMagicOnly", kGoodGz.substr(0, 2), {"truncated", "compressed data end early"}},
        BadFile{"GzHalf", kGoodGz.substr(0, kGoodGz.size() / 2), {"truncated"}},
        BadFile{"GzWithoutTrailer", kGoodGz.substr(0, kGoodGz.size() - 3), {"truncated"}},
        BadFile{"GzJunk", kGoodGz + "junk", {"4 bytes of junk"}},
        BadFile{"GzBadChecksum",
                with_byte(kGoodGz, kGoodGz.size() - 7, static_cast<char>(~kGoodGz.end()[-7])),
                {"damaged gzip data", "check"}},
        BadFile{"GzBadMethod", with_byte(kGoodGz, 2, 7), {"damaged gzip data"}}),
    [](const auto& tested) { return tested.param.what; });

}  // namespace
}  // namespace crais
