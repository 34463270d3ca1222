#include <gtest/gtest.h>

#include "data/images.h"
#include "support/expect_error.h"
#include "support/idx_files.h"
#include "support/temporary_folder.h"
#include "util/digest.h"

namespace crais {
namespace {

using testing::gzip;
using testing::TemporaryFolder;

/// `count` lines of 784 numbers; in line i, number j is 1 where 7 divides i + j.
std::string amat(int count, const std::string& line_end = "\n") {
  std::string text;
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j < 784; ++j) {
      if (j) text += ' ';
      text += (i + j) % 7 == 0 ? '1' : '0';
    }
    text += line_end;
  }
  return text;
}

TEST(Amat, ReadsEachSplitFromItsOwnFile) {
  const TemporaryFolder folder;
  folder.file("binarized_mnist_train.amat", amat(5));
  folder.file("raw/binarized_mnist_valid.amat.gz", gzip(amat(3)));
  folder.file("mnist/binarized_mnist_test.amat", amat(2));
  EXPECT_EQ(load_amat(folder.string(), Split::kTrain).size(), 5);
  EXPECT_EQ(load_amat(folder.string(), Split::kTest).size(), 2);
  const Images images = load_amat(folder.string(), Split::kValidation);
  ASSERT_EQ(images.pixels.sizes(), (std::vector<int64_t>{3, 784}));
  EXPECT_EQ(images.rows, 28);
  EXPECT_EQ(images.cols, 28);
  EXPECT_EQ(images.first_index, 0);
  EXPECT_FALSE(images.labels);
  EXPECT_EQ(images.md5, md5(amat(3)));
  EXPECT_EQ(images.pixels[0][0].item<int>(), 255);
  EXPECT_EQ(images.pixels[0][1].item<int>(), 0);
  EXPECT_EQ(images.pixels[2][5].item<int>(), 255);
  EXPECT_EQ(images.pixels.eq(255).sum().item<int>(), 3 * 784 / 7);
}

TEST(Amat, LineEndsAndBlanksDoNotMatter) {
  const at::Tensor expected = [] {
    const TemporaryFolder folder;
    folder.file("binarized_mnist_test.amat", amat(3));
    return load_amat(folder.string(), Split::kTest).pixels;
  }();
  const std::string unix_text = amat(3);
  for (const std::string& text : {amat(3, "\r\n"), amat(3, " \n"), unix_text + "\n\n",
                                  unix_text.substr(0, unix_text.size() - 1)}) {
    const TemporaryFolder folder;
    folder.file("binarized_mnist_test.amat", text);
    EXPECT_TRUE(at::equal(load_amat(folder.string(), Split::kTest).pixels, expected));
  }
}

TEST(Amat, NothingFoundListsEveryPath) {
  const TemporaryFolder folder;
  const std::string root = folder.string();
  expect_error(ErrorKind::kNoInput,
               {root + "/binarized_mnist_valid.amat[.gz]", root + "/raw/", root + "/MNIST/raw/",
                root + "/mnist/", "Larochelle"},
               [&] { load_amat(root, Split::kValidation); });
}

void expect_bad(const std::string& text, std::initializer_list<std::string> words) {
  const TemporaryFolder folder;
  folder.file("binarized_mnist_test.amat", text);
  expect_error(ErrorKind::kData, {"binarized_mnist_test.amat"},
               [&] { load_amat(folder.string(), Split::kTest); });
  expect_error(ErrorKind::kData, words, [&] { load_amat(folder.string(), Split::kTest); });
}

TEST(Amat, BadLinesAreNamed) {
  expect_bad("", {"empty"});
  expect_bad(" \n\n", {"empty"});
  expect_bad(amat(2) + "0 1 0\n", {"line 3", "3 numbers", "784"});
  expect_bad(amat(2) + "\n" + amat(1), {"line 3", "0 numbers"});
  expect_bad(amat(1) + "0 " + amat(1), {"line 2", "785 numbers"});
  expect_bad(amat(1) + "0 0.5 1\n", {"line 2", "'0.5' is not 0 or 1"});
  expect_bad("0 2 1\n", {"line 1", "'2' is not 0 or 1"});
  expect_bad("0 10 1\n", {"line 1", "'10' is not 0 or 1"});
  const std::string whole = gzip(amat(9));
  expect_bad(whole.substr(0, whole.size() - 9), {"truncated"});
}

}  // namespace
}  // namespace crais
