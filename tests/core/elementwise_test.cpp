#include <gtest/gtest.h>

#include <type_traits>

#include "core/plain.h"
#include "core/rng.h"

namespace crais {
namespace {

/// x - (y / 2 - z), and whether it was asked for as numbers.
struct Formula {
  bool& of_numbers;
  template <class T>
  T operator()(const T& x, const T& y, const T& z) const {
    of_numbers = std::is_same_v<T, double>;
    return x - (0.5 * y - z);
  }
};

struct Found {
  at::Tensor value;
  bool of_numbers = false;
};

Found found(const at::Tensor& x, const at::Tensor& y, const at::Tensor& z) {
  Found found;
  found.value = elementwise(Formula{found.of_numbers}, x, y, z);
  return found;
}

TEST(Elementwise, NumbersAndTensorsGiveTheSameBits) {
  at::Generator rng = make_generator(1);
  const auto randn = [&] { return at::randn({3, 5}, rng, at::kDouble); };
  at::Tensor x = randn(), y = randn(), z = randn();
  x[0][1] = INFINITY, y[0][1] = INFINITY, z[2][2] = NAN;
  const at::Tensor expected = x - (0.5 * y - z);
  EXPECT_TRUE(expected.isnan().any().item<bool>());
  const auto expect_equal = [&](const Found& found, bool of_numbers) {
    EXPECT_EQ(found.of_numbers, of_numbers);
    EXPECT_TRUE(at::allclose(found.value, expected, 0, 0, /*equal_nan=*/true));
  };
  expect_equal(found(x, y, z), true);
  const at::Tensor turned = y.t().contiguous().t();
  expect_equal(found(x, turned, z), false);
  EXPECT_EQ(found(x.flatten(), y.flatten(), z.flatten()).value.sizes(), at::IntArrayRef({15}));
}

TEST(Elementwise, LeavesOtherShapesTypesAndGraphsToTensors) {
  const at::Tensor x = at::ones({2, 3}, at::kDouble), column = at::ones({2, 1}, at::kDouble);
  const Found broadcast = found(x, column, x);
  EXPECT_FALSE(broadcast.of_numbers);
  EXPECT_TRUE(at::equal(broadcast.value, 1.5 * x));
  EXPECT_FALSE(found(column, x, x).of_numbers);
  EXPECT_FALSE(found(x.to(at::kFloat), x, x).of_numbers);
  at::Tensor leaf = x.clone().requires_grad_();
  const Found with_graph = found(x, leaf, x);
  EXPECT_FALSE(with_graph.of_numbers);
  with_graph.value.sum().backward();
  EXPECT_TRUE(at::equal(leaf.grad(), -0.5 * x));
}

}  // namespace
}  // namespace crais
