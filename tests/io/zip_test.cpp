#include "io/zip.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/zip_writer.h"

namespace crais {
namespace {

using testing::zip_of;

TEST(Zip, ReadsStoredAndCompressedEntriesInTheirOrder) {
  const std::string long_text(5000, 'x');
  const std::string bytes =
      zip_of({{"b/two", "second"}, {"a", long_text, true}, {"empty", ""}, {"void", "", true}});
  EXPECT_TRUE(is_zip(bytes));
  EXPECT_LT(bytes.size(), 1000U);
  ZipArchive archive(bytes, "FILE");
  EXPECT_EQ(archive.names(), (std::vector<std::string>{"b/two", "a", "empty", "void"}));
  EXPECT_EQ(archive.read("a"), long_text);
  EXPECT_EQ(archive.read("b/two"), "second");
  EXPECT_EQ(archive.read("b/two"), "second");
  EXPECT_EQ(archive.read("empty"), "");
  EXPECT_EQ(archive.read("void"), "");
}

TEST(Zip, OtherBytesAreNoZip) {
  EXPECT_FALSE(is_zip(""));
  EXPECT_FALSE(is_zip("PK"));
  EXPECT_FALSE(is_zip("\x93NUMPY"));
  for (const std::string bytes : {"", "text"})
    expect_error(ErrorKind::kData, {"FILE: not a zip archive"}, [&] { ZipArchive(bytes, "FILE"); });
  expect_error(ErrorKind::kData, {"FILE: a damaged or truncated zip archive"},
               [] { ZipArchive("PK\x03\x04", "FILE"); });
}

TEST(Zip, AnAbsentEntryIsNamed) {
  const std::string bytes = zip_of({{"a", "1"}});
  ZipArchive archive(bytes, "FILE");
  expect_error(ErrorKind::kData, {"FILE", "\"b\\n\"", "not in the archive"},
               [&] { archive.read("b\n"); });
}

TEST(Zip, RefusesANameGivenTwice) {
  const std::string bytes = zip_of({{"a", "1"}, {"a", "2"}});
  expect_error(ErrorKind::kData, {"FILE", "two entries", "\"a\""},
               [&] { ZipArchive(bytes, "FILE"); });
}

TEST(Zip, RefusesADamagedEntry) {
  for (const bool compressed : {false, true}) {
    std::string bytes = zip_of({{"name", "a content of some length", compressed}});
    bytes[30 + 4 + 6] = static_cast<char>(bytes[30 + 4 + 6] ^ 1);
    ZipArchive archive(bytes, "FILE");
    expect_error(ErrorKind::kData, {"FILE", "\"name\"", "damaged"}, [&] { archive.read("name"); });
  }
}

TEST(Zip, RefusesASizeThatIsNotTrue) {
  for (const uint32_t claimed : {3U, 9U}) {
    const std::string bytes = zip_of({{"name", "123456", true, claimed}});
    ZipArchive archive(bytes, "FILE");
    expect_error(ErrorKind::kData, {"FILE", "\"name\"", "damaged"}, [&] { archive.read("name"); });
  }
}

TEST(Zip, RefusesABomb) {
  // 4 GB claimed by a hundred bytes.
  const std::string liar = zip_of({{"name", "123456", true, 0xfffffffeU}});
  ZipArchive archive(liar, "FILE");
  expect_error(ErrorKind::kData, {"\"name\"", "unpacks to 4294967294", "100 times"},
               [&] { archive.read("name"); });

  // 40 MB of zeros in 40 kB, twice: what is read adds up.
  std::string zeros;
  zeros.resize(40'000'000);
  const std::string bomb = zip_of({{"a", zeros, true}, {"b", zeros, true}});
  EXPECT_LT(bomb.size(), 100'000U);
  ZipArchive twice(bomb, "FILE");
  EXPECT_EQ(twice.read("a").size(), zeros.size());
  expect_error(ErrorKind::kData, {"\"b\"", "unpacks to 40000000", "27108864 bytes are left"},
               [&] { twice.read("b"); });
}

TEST(Zip, EveryTruncationIsRefused) {
  const std::string bytes = zip_of({{"a", "first"}, {"b", "the second", true}});
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(ZipArchive(bytes.substr(0, size), "FILE"), Error) << size;
}

}  // namespace
}  // namespace crais
