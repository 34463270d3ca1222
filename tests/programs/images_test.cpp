// The images that methods learn on: others than those that are estimated.
#include "programs/eval_loglik/images.h"

#include <gtest/gtest.h>

#include "core/rng.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace crais {
namespace {

EvalModel tiny() {
  VaeArchitecture architecture;
  architecture.image_rows = 2;
  architecture.image_cols = 3;
  architecture.latent = 2;
  architecture.hidden = {4};
  return checkpoint_model({make_vae(architecture, 1), {}, ""}, at::kCPU, at::kFloat);
}

/// `count` images of 2 x 3 pixels, all of the grey value `pixel`.
std::string idx(char count, char pixel) {
  return std::string("\0\0\x08\x03\0\0\0", 7) + count + std::string("\0\0\0\x02\0\0\0\x03", 8) +
         std::string(static_cast<size_t>(6 * count), pixel);
}

class TrainingImages : public ::testing::Test {
 protected:
  TrainingImages() {
    settings_.data_dir = folder_.path();
    settings_.split = "test";
    folder_.file("t10k-images-idx3-ubyte", idx(5, '\0'));
  }

  EvalImages chosen() const {
    std::string notice;
    return choose_images(settings_, tiny(), notice);
  }
  EvalImages others() const { return choose_training_images(settings_, tiny(), chosen()); }

  testing::TemporaryFolder folder_;
  ImageSettings settings_;
};

TEST_F(TrainingImages, AreOfTheTrainingSplit) {
  EXPECT_EQ(others().size(), 0);  // there is no such file
  folder_.file("train-images-idx3-ubyte", idx(12, '\xff'));
  settings_.limit = 2;
  settings_.indices = "1:4";
  EXPECT_EQ(chosen().size(), 2);
  const EvalImages found = others();
  EXPECT_EQ(found.size(), 10);  // but for the last sixth, which validates
  EXPECT_EQ(found.indices.front(), 0);
  EXPECT_TRUE((found.pixels == 1).all().item<bool>());
  EXPECT_EQ(found.binarisation, chosen().binarisation);
  EXPECT_NE(found.digest, chosen().digest);
  settings_.split = "validation";
  settings_.indices.clear();
  EXPECT_EQ(others().size(), 10);
  settings_.split = "train";
  EXPECT_EQ(others().size(), 0);
}

TEST_F(TrainingImages, AreFurtherOnesOfSimulatedImages) {
  settings_.simulate = 5;
  settings_.limit = 3;
  settings_.indices = "1:5";
  const EvalImages found = others();
  EXPECT_EQ(found.size(), kTrainingImages);
  EXPECT_EQ(found.indices.front(), 4);
  settings_.limit.reset();
  EXPECT_EQ(chosen().indices.back(), 4);
  EXPECT_EQ(others().indices.front(), 5);
  // Each is decided by its number.
  settings_.simulate = 7;
  settings_.indices = "4:6";
  EXPECT_TRUE(at::equal(chosen().pixels, found.pixels.slice(0, 0, 2)));
}

EvalImages of_array(const at::Tensor& values, ImageSettings settings) {
  return choose_images(settings, tiny(), array_in_memory(values, {}, "x"));
}

TEST(BinaryPixels, AreNotGrey) {
  at::Generator rng = make_generator(1);
  const at::Tensor bytes = at::randint(256, {5, 2, 3}, rng, at::kByte);
  ImageSettings plain;
  expect_error(ErrorKind::kData, {"0 or 1", "static:0", "ContinuousBernoulli"},
               [&] { of_array(bytes.to(at::kFloat) / 255, plain); });
  ImageSettings scaled;
  scaled.scale = 255;
  expect_error(ErrorKind::kData, {"0 or 1", "static:0"}, [&] { of_array(bytes, scaled); });
  const at::Tensor black_or_white = bytes.gt(127).to(at::kByte) * 255;
  EXPECT_FALSE(of_array(black_or_white, scaled).is_grey);

  ImageSettings drawn;
  drawn.binarisation = "static:3";
  const at::Tensor expected = of_array(bytes, drawn).pixels;
  EXPECT_TRUE(at::equal(of_array(bytes.to(at::kFloat) / 255, drawn).pixels, expected));
  EXPECT_TRUE(at::equal(of_array(bytes.to(at::kDouble) / 255, drawn).pixels, expected));
  for (const at::Tensor& other :
       {at::full({5, 2, 3}, 0.1234), at::full({5, 2, 3}, 2.0), at::full({5, 2, 3}, -1.0)})
    expect_error(ErrorKind::kArgument, {"k / 255"}, [&] { of_array(other, drawn); });

  ImageSettings none;
  none.binarisation = "none";
  EXPECT_TRUE(of_array(bytes, none).is_grey);
  EXPECT_TRUE(of_array(bytes.to(at::kFloat) / 255, none).is_grey);
  ImageSettings means;
  means.is_for_means = true;
  EXPECT_FALSE(of_array(bytes.to(at::kFloat) / 255, means).is_grey);
}

}  // namespace
}  // namespace crais
