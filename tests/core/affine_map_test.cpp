#include "core/affine_map.h"

#include <gtest/gtest.h>

#include "core/rng.h"
#include "support/statistics.h"

namespace crais {
namespace {

using testing::max_abs_diff;

constexpr int64_t kProblems = 3, kParticles = 5, kDim = 4;

struct Case {
  const char* name;
  AffineMap map;
  at::Tensor loc;    // [P,D]
  at::Tensor dense;  // [P,D,D]
};

std::vector<Case> cases() {
  at::Generator rng = make_generator(1);
  const at::Tensor loc = at::randn({kProblems, kDim}, rng, at::kDouble);
  const at::Tensor diagonal = at::randn({kProblems, kDim}, rng, at::kDouble).exp();
  const at::Tensor lower =
      at::randn({kProblems, kDim, kDim}, rng, at::kDouble).tril(-1) + at::diag_embed(diagonal);
  const at::Tensor eye = at::eye(kDim, at::kDouble).repeat({kProblems, 1, 1});
  return {{"identity", AffineMap::identity(kProblems, kDim, at::kDouble), at::zeros_like(loc), eye},
          {"diagonal", AffineMap(loc, diagonal), loc, at::diag_embed(diagonal)},
          {"triangular", AffineMap(loc, lower), loc, lower}};
}

at::Tensor draw(uint64_t seed) {
  at::Generator rng = make_generator(seed);
  return at::randn({kProblems, kParticles, kDim}, rng, at::kDouble);
}

TEST(AffineMap, IsWhatItsMatrixSays) {
  const at::Tensor e = draw(2), g = draw(4);
  for (const auto& [name, map, loc, dense] : cases()) {
    SCOPED_TRACE(name);
    const at::Tensor expected =
        loc.unsqueeze(1) + at::matmul(dense.unsqueeze(1), e.unsqueeze(-1)).squeeze(-1);
    EXPECT_LT(max_abs_diff(map.to_z(e), expected), 1e-13);
    EXPECT_LT(max_abs_diff(map.log_abs_det(), std::get<1>(at::slogdet(dense))), 1e-13);
    EXPECT_EQ(map.log_abs_det().scalar_type(), at::kDouble);
    EXPECT_LT(max_abs_diff(map.to_e(map.to_z(e)), e), 1e-11);
    EXPECT_LT(max_abs_diff(map.to_z(map.to_e(e)), e), 1e-11);
    const at::Tensor leaf = e.clone().requires_grad_(true);
    (map.to_z(leaf) * g).sum().backward();
    EXPECT_LT(max_abs_diff(map.pull_back(g), leaf.grad()), 1e-13);
    const AffineMap part = map.select(at::tensor({1, 2}));
    EXPECT_EQ(part.num_problems(), 2);
    EXPECT_TRUE(at::equal(part.to_z(e.slice(0, 1, 3)), map.to_z(e).slice(0, 1, 3)));
    EXPECT_TRUE(at::equal(part.log_abs_det(), map.log_abs_det().slice(0, 1, 3)));
  }
}

// Blocks of 200 columns: one whole, one that is not.
TEST(AffineMap, SharesLargeMatrices) {
  constexpr int64_t kLargeDim = 250;
  at::Generator rng = make_generator(7);
  const at::Tensor loc = at::randn({1, kLargeDim}, rng, at::kDouble);
  const at::Tensor lower = at::randn({1, kLargeDim, kLargeDim}, rng, at::kDouble).tril(-1) / 50 +
                           at::eye(kLargeDim, at::kDouble);
  const AffineMap shared = AffineMap(loc, lower).select(at::zeros({kProblems}, at::kLong));
  const AffineMap apart(loc.repeat({kProblems, 1}), lower.repeat({kProblems, 1, 1}));
  const at::Tensor x = at::randn({kProblems, kParticles, kLargeDim}, rng, at::kDouble);
  EXPECT_EQ(shared.matrix().stride(0), 0);
  EXPECT_LT(max_abs_diff(shared.to_z(x), apart.to_z(x)), 1e-12);
  EXPECT_LT(max_abs_diff(shared.to_e(x), apart.to_e(x)), 1e-12);
  EXPECT_LT(max_abs_diff(shared.pull_back(x), apart.pull_back(x)), 1e-12);
  EXPECT_TRUE(at::equal(shared.log_abs_det(), apart.log_abs_det()));
  EXPECT_TRUE(at::equal(shared.widened(2).matrix(), apart.widened(2).matrix()));
  const at::Tensor index = at::tensor({2, 0});
  EXPECT_EQ(shared.select(index).matrix().stride(0), 0);
  EXPECT_TRUE(at::equal(shared.select(index).matrix(), apart.select(index).matrix()));
}

}  // namespace
}  // namespace crais
