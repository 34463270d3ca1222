#include "core/particles.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/rng.h"

namespace crais {
namespace {

TEST(Choose, TakesWholeParticles) {
  at::Generator rng = make_generator(1);
  const at::Tensor mask = at::rand({3, 5}, rng) < 0.4;
  const at::Tensor no = at::randn({3, 5, 7}, rng);
  at::Tensor yes = at::randn({3, 5, 7}, rng);
  yes[1][2][3] = std::numeric_limits<float>::infinity();
  const at::Tensor expected = at::where(mask.unsqueeze(-1), yes, no);
  EXPECT_FALSE(at::equal(expected, no));
  EXPECT_TRUE(at::equal(choose(mask, yes, no), expected));
  EXPECT_TRUE(
      at::equal(choose(mask, yes.to(at::kDouble), no.to(at::kDouble)), expected.to(at::kDouble)));
  // In whatever order it lies in memory.
  const at::Tensor turned = yes.transpose(0, 2).contiguous().transpose(0, 2);
  EXPECT_TRUE(at::equal(choose(mask, turned, no), expected));
  EXPECT_TRUE(at::equal(choose(mask.t().contiguous().t(), yes, no), expected));
}

}  // namespace
}  // namespace crais
