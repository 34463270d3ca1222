#include "targets/function_target.h"

#include <gtest/gtest.h>

#include "core/rng.h"
#include "support/expect_error.h"

namespace crais {
namespace {

at::Tensor zero(const at::Tensor& z, const at::Tensor& /*index*/) { return 0 * z.sum(-1); }

/// Draws of 2 chains; draw t of chain c is 100 c + t, in every coordinate.
FunctionTarget target_of(int64_t problems, int64_t draws) {
  const at::Tensor t = at::arange(draws, at::kDouble), chains = at::stack({t, 100 + t});
  return {{problems, 3, at::kDouble, {}, chains.unsqueeze(2).expand({2, draws, 3})},
          FunctionTarget::IndexedLogDensity(zero)};
}

TEST(DrawsOfAFunction, AreForTheBaseAndThenForEachProblemItsOwn) {
  const FunctionTarget target = target_of(/*problems=*/3, /*draws=*/12);
  EXPECT_EQ(target.traits().draws->sizes(), at::IntArrayRef({2, 6, 3}));
  EXPECT_EQ(target.traits().draws->max().item<double>(), 105);
  at::Generator rng = make_generator(1);
  const auto part = target.select(at::tensor({2, 0}, at::kLong));
  const at::Tensor drawn = std::get<0>(part->exact_sample(8, rng)->select(2, 1).sort(1));
  const at::Tensor known = at::tensor({10, 10, 11, 11, 110, 110, 111, 111}, at::kDouble);
  EXPECT_TRUE(at::equal(drawn[0], known)) << drawn;  // each comes twice
  EXPECT_TRUE(at::equal(drawn[1], known - 4)) << drawn;
  const at::Tensor first = target.exact_sample(4, rng)->select(2, 0)[0];
  EXPECT_EQ(std::get<0>(at::_unique(first)).numel(), 4);  // none twice
}

TEST(DrawsOfAFunction, AreEnough) {
  expect_error(ErrorKind::kArgument, {"at least 8 of each chain"}, [] { target_of(4, 7); });
}

}  // namespace
}  // namespace crais
