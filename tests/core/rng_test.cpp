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

TEST(Rng, HashedUniformIsUniform) {
  constexpr int kCount = 100000;
  double sum = 0, sum_of_squares = 0;
  for (uint64_t i = 0; i < kCount; ++i) {
    const double u = hashed_uniform(7, i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    sum_of_squares += u * u;
  }
  EXPECT_NEAR(sum / kCount, 1.0 / 2, 5 * 0.289 / std::sqrt(kCount));
  EXPECT_NEAR(sum_of_squares / kCount, 1.0 / 3, 5 * 0.298 / std::sqrt(kCount));
}

TEST(Rng, GeneratorsRepeatAndLeaveTheGlobalOneAlone) {
  at::Generator first = make_generator(3), second = make_generator(3);
  const at::Tensor global_before = at::detail::getDefaultCPUGenerator().get_state();
  EXPECT_TRUE(at::equal(at::randn({5}, first), at::randn({5}, second)));
  EXPECT_TRUE(at::equal(global_before, at::detail::getDefaultCPUGenerator().get_state()));
}

}  // namespace
}  // namespace crais
