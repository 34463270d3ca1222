// Which images are chosen, and how they are taken.
#include "programs/eval_loglik/images.h"

#include <gtest/gtest.h>

#include "core/rng.h"
#include "support/expect_error.h"

namespace crais {
namespace {

EvalModel tiny() {
  VaeArchitecture architecture{.image_rows = 2, .image_cols = 3, .latent = 2, .hidden = {4}};
  return checkpoint_model({make_vae(architecture, 1), {}, ""}, at::kCPU, at::kFloat);
}

TEST(SimulatedImages, AreDecidedByTheirNumbers) {
  const auto chosen = [](int64_t count, const std::string& indices) {
    ImageSettings settings{.indices = indices, .simulate = count};
    std::string notice;
    return choose_images(settings, tiny(), notice);
  };
  const EvalImages few = chosen(7, "4:6"), many = chosen(60, "2:30");
  EXPECT_EQ(few.indices, (std::vector<int64_t>{4, 5}));
  EXPECT_TRUE(at::equal(few.pixels, many.pixels.slice(0, 2, 4)));
  EXPECT_NE(few.digest, many.digest);
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
  ImageSettings scaled{.scale = 255};
  expect_error(ErrorKind::kData, {"0 or 1", "static:0"}, [&] { of_array(bytes, scaled); });
  const at::Tensor black_or_white = bytes.gt(127).to(at::kByte) * 255;
  EXPECT_FALSE(of_array(black_or_white, scaled).is_grey);

  ImageSettings drawn{.binarisation = "static:3"};
  const at::Tensor expected = of_array(bytes, drawn).pixels;
  EXPECT_TRUE(at::equal(of_array(bytes.to(at::kFloat) / 255, drawn).pixels, expected));
  EXPECT_TRUE(at::equal(of_array(bytes.to(at::kDouble) / 255, drawn).pixels, expected));
  for (const at::Tensor& other :
       {at::full({5, 2, 3}, 0.1234), at::full({5, 2, 3}, 2.0), at::full({5, 2, 3}, -1.0)})
    expect_error(ErrorKind::kArgument, {"k / 255"}, [&] { of_array(other, drawn); });

  ImageSettings none{.binarisation = "none"};
  EXPECT_TRUE(of_array(bytes, none).is_grey);
  EXPECT_TRUE(of_array(bytes.to(at::kFloat) / 255, none).is_grey);
}

}  // namespace
}  // namespace crais
