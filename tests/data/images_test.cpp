#include "data/images.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "support/expect_error.h"
#include "support/idx_files.h"
#include "support/temporary_folder.h"
#include "util/digest.h"

namespace crais {
namespace {

using testing::gzip;
using testing::idx_images;
using testing::idx_labels;
using testing::ScopedVariable;
using testing::TemporaryFolder;

TEST(Splits, NamesAndTheirInverse) {
  for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest})
    EXPECT_EQ(parse_split(to_string(split)), split);
  EXPECT_EQ(to_string(Split::kValidation), "validation");
  expect_error(ErrorKind::kArgument, {"'valid'", "train, validation, test"},
               [] { parse_split("valid"); });
}

TEST(LoadImages, FindsEveryFolderAndTheEnvironment) {
  for (const std::string below : {"", "raw/", "MNIST/raw/", "mnist/"}) {
    const TemporaryFolder folder;
    EXPECT_FALSE(has_images(folder.string(), Split::kTest));
    const auto path = folder.file(below + "t10k-images-idx3-ubyte.gz", gzip(idx_images(3, 2, 2)));
    EXPECT_TRUE(has_images(folder.string(), Split::kTest));
    EXPECT_FALSE(has_images(folder.string(), Split::kTrain));
    EXPECT_EQ(load_images(folder.string(), Split::kTest).source, path);
    const ScopedVariable variable("CRAIS_DATA", folder.string());
    EXPECT_EQ(load_images("", Split::kTest).source, path);
  }
}

TEST(LoadImages, TheLastSixthOfTrainIsValidation) {
  const TemporaryFolder folder;
  folder.file("train-images-idx3-ubyte", idx_images(13, 1, 1));
  folder.file("train-labels-idx1-ubyte.gz", gzip(idx_labels(13)));
  const Images train = load_images(folder.string(), Split::kTrain);
  const Images validation = load_images(folder.string(), Split::kValidation);
  EXPECT_EQ(train.size(), 11);
  EXPECT_EQ(validation.size(), 2);
  EXPECT_EQ(train.first_index, 0);
  EXPECT_EQ(validation.first_index, 11);
  EXPECT_EQ(train.pixels[10][0].item<int>(), 10);
  EXPECT_EQ(validation.pixels[0][0].item<int>(), 11);
  EXPECT_EQ((*train.labels)[10].item<int>(), 0);
  EXPECT_EQ((*validation.labels)[1].item<int>(), 2);
  EXPECT_EQ(train.md5, validation.md5);
}

TEST(LoadImages, AnEmptyValidationSplitIsAnError) {
  const TemporaryFolder folder;
  folder.file("train-images-idx3-ubyte", idx_images(5, 1, 1));
  EXPECT_EQ(load_images(folder.string(), Split::kTrain).size(), 5);
  expect_error(ErrorKind::kData, {"validation split is empty", "5 images"},
               [&] { load_images(folder.string(), Split::kValidation); });
}

TEST(LoadImages, NothingFoundListsEveryPathAndTheWayOut) {
  const TemporaryFolder folder;
  const std::string root = folder.string();
  const std::string name = "/t10k-images-idx3-ubyte[.gz]";
  expect_error(ErrorKind::kNoInput,
               {"no test images", root + name, root + "/raw" + name, root + "/MNIST/raw" + name,
                root + "/mnist" + name, "scripts/fetch-mnist " + root},
               [&] { load_images(root, Split::kTest); });
  const ScopedVariable variable("CRAIS_DATA", root);
  expect_error(ErrorKind::kNoInput,
               {root + "/raw/train-images", "data/mnist/train-images", "scripts/fetch-mnist"},
               [&] { load_images("", Split::kTrain); });
}

TEST(LoadImages, LabelsMustMatch) {
  const TemporaryFolder folder;
  folder.file("t10k-images-idx3-ubyte", idx_images(4, 2, 2));
  folder.file("t10k-labels-idx1-ubyte", idx_labels(3));
  expect_error(ErrorKind::kData, {"t10k-labels", "3 labels", "4 images"},
               [&] { load_images(folder.string(), Split::kTest); });
}

/// The real files where they are at hand.
class Mnist : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::getenv("CRAIS_DATA") || !has_images("", Split::kTrain) ||
        !has_images("", Split::kTest))
      GTEST_SKIP() << "MNIST is not in $CRAIS_DATA";
  }
};

TEST_F(Mnist, HasItsCountsAndDigests) {
  const Images test = load_images("", Split::kTest);
  EXPECT_EQ(test.pixels.sizes(), (std::vector<int64_t>{10000, 784}));
  EXPECT_EQ(test.md5, "2646ac647ad5339dbf082846283269ea");
  EXPECT_EQ((*test.labels)[0].item<int>(), 7);
  const Images train = load_images("", Split::kTrain);
  EXPECT_EQ(train.pixels.sizes(), (std::vector<int64_t>{50000, 784}));
  EXPECT_EQ(train.md5, "6bbc9ace898e44ae57da46a324031adb");
  EXPECT_EQ((*train.labels)[0].item<int>(), 5);
  const Images validation = load_images("", Split::kValidation);
  EXPECT_EQ(validation.size(), 10000);
  EXPECT_EQ(validation.first_index, 50000);
  // Known of the file: the mean grey level of all 60,000 is 33.318.
  const double sum = train.pixels.sum().item<double>() + validation.pixels.sum().item<double>();
  EXPECT_NEAR(sum / (60000 * 784), 33.318, 0.001);
}

}  // namespace
}  // namespace crais
