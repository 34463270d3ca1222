#include "data/array_file.h"

#include <gtest/gtest.h>

#include "io/npy.h"
#include "support/expect_error.h"
#include "support/idx_files.h"
#include "support/temporary_folder.h"
#include "support/zip_writer.h"
#include "util/digest.h"

namespace crais {
namespace {

using testing::gzip;
using testing::idx_images;
using testing::idx_labels;
using testing::TemporaryFolder;
using testing::zip_of;

std::string npy(double first) {
  return npy_text(at::tensor({first, 1.0, 2.0, 3.0, 4.0, 5.0}, at::kDouble).view({2, 3}));
}

at::Tensor doubles(double first) {
  return at::tensor({first, 1.0, 2.0, 3.0, 4.0, 5.0}, at::kDouble).view({2, 3});
}

void expect_refused(const std::string& specification, ErrorKind kind,
                    const std::vector<std::string>& words) {
  expect_error(kind, words, [&] { read_array_file(specification); });
}

TEST(ArrayFile, Npy) {
  const TemporaryFolder folder;
  const std::string file = folder.file("x.dat", npy(7));
  const ArrayFile array = read_array_file(file);
  EXPECT_TRUE(at::equal(array.values, doubles(7)));
  EXPECT_FALSE(array.labels);
  EXPECT_EQ(array.source, file);
  EXPECT_EQ(array.digest, sha256(npy(7)));
  expect_refused(file + ":x", ErrorKind::kArgument, {"without a name", "leave out ':x'"});
}

TEST(ArrayFile, NpzByKey) {
  const TemporaryFolder folder;
  const std::string file =
      folder.file("x", zip_of({{"train.npy", npy(1), true}, {"test.npy", npy(2)}}));
  EXPECT_TRUE(at::equal(read_array_file(file + ":train").values, doubles(1)));
  const ArrayFile test = read_array_file(file + ":test");
  EXPECT_TRUE(at::equal(test.values, doubles(2)));
  EXPECT_EQ(test.source, file + ":test");
  expect_refused(file, ErrorKind::kArgument, {"2 arrays", file + ":KEY", "\"train\", \"test\""});
  expect_refused(file + ":tests", ErrorKind::kArgument,
                 {file + ": has no array \"tests\"", "\"train\"", "did you mean test?"});
  expect_refused(file + ":", ErrorKind::kArgument, {"has no array \"\""});

  const std::string one = folder.file("one", zip_of({{"x.npy", npy(1)}, {"note", ""}}));
  EXPECT_TRUE(at::equal(read_array_file(one).values, doubles(1)));
  EXPECT_TRUE(at::equal(read_array_file(one + ":x").values, doubles(1)));
}

TEST(ArrayFile, WhatNumPyWrote) {
  const std::string folder = std::string(CRAIS_SOURCE) + "/tests/io/data/";
  const at::Tensor counted = at::arange(6).view({2, 3});
  for (const auto& [key, type] :
       std::vector<std::pair<std::string, at::ScalarType>>{{"b1", at::kBool},
                                                           {"u1", at::kByte},
                                                           {"i1", at::kChar},
                                                           {"i2", at::kShort},
                                                           {"u2", at::kInt},
                                                           {"i4", at::kInt},
                                                           {"u4", at::kLong},
                                                           {"i8", at::kLong},
                                                           {"f2", at::kHalf},
                                                           {"f4", at::kFloat},
                                                           {"f8", at::kDouble},
                                                           {"fortran", at::kFloat}}) {
    const at::Tensor values = read_array_file(folder + "arrays.npz:" + key).values;
    EXPECT_EQ(values.scalar_type(), type) << key;
    EXPECT_TRUE(at::equal(values, counted.to(type))) << key;
  }
  EXPECT_TRUE(at::equal(read_array_file(folder + "compressed.npz:x").values,
                        at::zeros({100, 784}, at::kByte)));
  EXPECT_TRUE(at::equal(read_array_file(folder + "compressed.npz:y").values,
                        at::arange(100).remainder(10)));
}

TEST(ArrayFile, AnArrayWithinAnArchiveIsNamedInMessages) {
  const TemporaryFolder folder;
  const std::string cut = npy(1).substr(0, 150);
  const std::string file = folder.file("x.npz", zip_of({{"a.npy", cut}}));
  expect_refused(file, ErrorKind::kData, {file, "\"a.npy\"", "48 bytes", "22 are there"});
}

TEST(ArrayFile, IdxBringsItsLabels) {
  const TemporaryFolder folder;
  const std::string images = folder.file("t10k-images-idx3-ubyte.gz", gzip(idx_images(5, 4, 3)));
  EXPECT_FALSE(read_array_file(images).labels);
  folder.file("t10k-labels-idx1-ubyte", idx_labels(5));
  const ArrayFile array = read_array_file(images);
  EXPECT_EQ(array.values.sizes(), (std::vector<int64_t>{5, 4, 3}));
  EXPECT_EQ(array.digest, sha256(gzip(idx_images(5, 4, 3))));
  ASSERT_TRUE(array.labels);
  EXPECT_TRUE(at::equal(*array.labels, at::arange(5, at::kByte)));
  folder.file("t10k-labels-idx1-ubyte", idx_labels(4));
  expect_refused(images, ErrorKind::kData, {"4 labels for the 5 images"});

  const std::string labels = folder.file("labels", gzip(idx_labels(7)));
  EXPECT_TRUE(at::equal(read_array_file(labels).values, at::arange(7, at::kByte)));
  const std::string other = folder.file("images", idx_images(2, 2, 2));
  EXPECT_EQ(read_array_file(other).values.numel(), 8);
}

TEST(ArrayFile, OtherFilesAreRefusedWithAList) {
  const TemporaryFolder folder;
  for (const std::string& bytes :
       {std::string(), std::string("1,2\n3,4\n"), std::string("\x89PNG\r\n"), gzip("1,2\n"),
        std::string(100, '\0'), std::string("{}")})
    expect_refused(folder.file("x.npy", bytes), ErrorKind::kData,
                   {"x.npy: not a file of arrays", ".npz", "numpy.save("});
  expect_refused(folder.file("x", zip_of({{"a.txt", "1"}})), ErrorKind::kData,
                 {"zip archive", "numpy.savez", "numpy.save("});
  expect_refused(folder.file("x", "PK\x03\x04"), ErrorKind::kData, {"damaged"});
  expect_refused(folder.file("x", npy_text(at::empty({0, 3}, at::kDouble))), ErrorKind::kData,
                 {"without values"});
}

TEST(ArrayFile, PlacesAndColons) {
  const TemporaryFolder folder;
  expect_refused(folder.string() + "/no.npz:x", ErrorKind::kNoInput, {"no.npz:x: no such file"});
  expect_refused(folder.string(), ErrorKind::kNoInput, {"is a folder"});
  expect_refused("", ErrorKind::kNoInput, {"no such file"});
  expect_refused(":", ErrorKind::kNoInput, {"no such file"});
  const std::string file = folder.file("a:b", zip_of({{"c:d.npy", npy(1)}, {"e.npy", npy(2)}}));
  EXPECT_TRUE(at::equal(read_array_file(file + ":c:d").values, doubles(1)));
  EXPECT_TRUE(at::equal(read_array_file(file + ":e").values, doubles(2)));
}

}  // namespace
}  // namespace crais
