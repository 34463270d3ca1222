#include "core/rng.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <cmath>

namespace crais {
namespace {

TEST(Rng, StreamsDependOnSeedPurposeAndIndex) {
  const uint64_t seed = derive_seed(1, Purpose::kEstimate, 0);
  EXPECT_EQ(seed, derive_seed(1, Purpose::kEstimate, 0));
  EXPECT_NE(seed, derive_seed(2, Purpose::kEstimate, 0));
  EXPECT_NE(seed, derive_seed(1, Purpose::kPilot, 0));
  EXPECT_NE(seed, derive_seed(1, Purpose::kEstimate, 1));
}

TEST(Rng, GeneratorsRepeatAndLeaveTheGlobalOneAlone) {
  at::Generator first = make_generator(3), second = make_generator(3);
  const at::Tensor global_before = at::detail::getDefaultCPUGenerator().get_state();
  EXPECT_TRUE(at::equal(at::randn({5}, first), at::randn({5}, second)));
  EXPECT_TRUE(at::equal(global_before, at::detail::getDefaultCPUGenerator().get_state()));
}

TEST(Rng, GeneratorsDrawLibTorchsNumbers) {
  at::Generator ours = make_generator(5), theirs = at::make_generator<at::CPUGeneratorImpl>(5);
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    const at::TensorOptions options(dtype);
    EXPECT_TRUE(at::equal(fill_normal(at::empty({3, 50}, options), ours),
                          at::empty({3, 50}, options).normal_(0, 1, theirs)));
    EXPECT_TRUE(at::equal(fill_uniform(at::empty({7}, options), ours, 0.5, 2),
                          at::empty({7}, options).uniform_(0.5, 2, theirs)));
  }
}

TEST(Rng, CallsOfACountingGeneratorDiffer) {
  at::Generator rng = make_counting_generator(5);
  at::Generator same = make_counting_generator(5);
  const at::Tensor first = fill_normal(at::empty({40, 50}), rng);
  const at::Tensor second = fill_normal(at::empty({40, 50}), rng);
  EXPECT_FALSE((first == second).any().item<bool>());
  EXPECT_TRUE(at::equal(first, fill_normal(at::empty({2000}), same).view({40, 50})));
  at::Generator clone = rng.clone();
  EXPECT_TRUE(at::equal(fill_normal(at::empty({9}), rng), fill_normal(at::empty({9}), clone)));
}

TEST(Rng, WhatCannotBeCountedIsLibTorchs) {
  at::Generator one = make_generator(5), two = make_counting_generator(5);
  const auto both = [&](const at::Tensor& x) {
    return at::equal(fill_normal(x.clone(), one), fill_normal(x.clone(), two));
  };
  EXPECT_TRUE(both(at::empty({50}, at::kDouble)));
  EXPECT_TRUE(both(at::empty({8, 50}).t()));
  EXPECT_FALSE(both(at::empty({50})));
}

TEST(Rng, UniformNumbersOfACountingGeneratorLieBetweenTheirBounds) {
  at::Generator rng = make_counting_generator(5);
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    const at::Tensor u = fill_uniform(at::empty({100'000}, dtype), rng, 0.75, 1.25);
    EXPECT_GE(u.min().item<double>(), 0.75);
    EXPECT_LE(u.max().item<double>(), 1.25);
    EXPECT_NEAR(u.mean().item<double>(), 1, 5 * 0.5 / std::sqrt(12 * 1e5));
  }
}

}  // namespace
}  // namespace crais
