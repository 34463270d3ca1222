// Counted random numbers are those of their distribution, and the same on every instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/rng.h"
#include "simd/simd_kernel.h"
#include "support/guarded_memory.h"

namespace crais {
namespace {

using Numbers = std::vector<float>;

Numbers normals(uint64_t key, int64_t count, const SimdKernel& kernel = simd_kernel()) {
  Numbers x(static_cast<size_t>(count));
  kernel.normals(key, x.data(), count);
  return x;
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

/// The largest distance between two distribution functions, times the root of the number: above
/// 2.3 with a probability of 5e-5.
template <typename Number, typename Cdf>
double kolmogorov(std::vector<Number> x, const Cdf& cdf) {
  std::sort(x.begin(), x.end());
  const auto count = static_cast<double>(x.size());
  double farthest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double p = cdf(static_cast<double>(x[i])), rank = static_cast<double>(i);
    farthest = std::max({farthest, p - rank / count, (rank + 1) / count - p});
  }
  return farthest * std::sqrt(count);
}

/// The mean product of two samples, in standard errors, for numbers of mean 0 and variance 1.
double correlation(const float* a, const float* b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum / std::sqrt(static_cast<double>(count));
}

TEST(Random, MomentsOfNormalNumbers) {
  constexpr int64_t kCount = int64_t{1} << 18;
  constexpr int kKeys = 16, kMoments = 8;
  double sums[kMoments + 1] = {};
  for (uint64_t key = 0; key < kKeys; ++key)
    for (const float value : normals(mix64(key), kCount)) {
      double power = 1;
      for (double& sum : sums) {
        sum += power;
        power *= static_cast<double>(value);
      }
    }
  const double n = sums[0];
  double even[2 * kMoments + 1] = {1};  // E x^m
  for (int m = 2; m <= 2 * kMoments; m += 2) even[m] = even[m - 2] * (m - 1);
  for (int m = 1; m <= kMoments; ++m) {
    const double sd = std::sqrt((even[2 * m] - even[m] * even[m]) / n);
    EXPECT_NEAR(sums[m] / n, even[m], 5 * sd) << "moment " << m;
  }
}

TEST(Random, NormalNumbersHaveTheNormalDistribution) {
  EXPECT_LT(kolmogorov(normals(1, 400'000), normal_cdf), 2.3);
}

TEST(Random, EveryPlaceInAGroupHasTheNormalDistribution) {
  const Numbers x = normals(11, 32 * 5'000);
  for (size_t place = 0; place < 32; ++place) {
    Numbers there;
    for (size_t i = place; i < x.size(); i += 32) there.push_back(x[i]);
    EXPECT_LT(kolmogorov(there, normal_cdf), 2.3) << place;
  }
}

TEST(Random, TailsHaveTheirShare) {
  constexpr double kBounds[] = {2, 3, 4, 4.5, 5};
  constexpr int64_t kCount = int64_t{1} << 20;
  constexpr int kKeys = 8;  // 8e6 numbers
  int64_t below[5] = {}, above[5] = {};
  for (uint64_t key = 0; key < kKeys; ++key) {
    const Numbers x = normals(mix64(1000 + key), kCount);
    for (size_t i = 0; i < 5; ++i) {
      const auto bound = static_cast<float>(kBounds[i]);
      above[i] += std::count_if(x.begin(), x.end(), [=](float v) { return v > bound; });
      below[i] += std::count_if(x.begin(), x.end(), [=](float v) { return v < -bound; });
    }
  }
  for (size_t i = 0; i < 5; ++i) {
    const double expected = double(kKeys) * double(kCount) * normal_cdf(-kBounds[i]);
    EXPECT_NEAR(double(above[i]), expected, 5 * std::sqrt(expected)) << "above " << kBounds[i];
    EXPECT_NEAR(double(below[i]), expected, 5 * std::sqrt(expected)) << "below " << kBounds[i];
  }
}

TEST(Random, NumbersOfOneKeyAreIndependent) {
  constexpr int64_t kCount = 200'000;
  const Numbers x = normals(5, kCount + 64);
  Numbers squares;
  for (const float v : x) squares.push_back((v * v - 1) / std::sqrt(2.0F));
  for (int64_t lag = 1; lag <= 64; ++lag) {
    EXPECT_LT(std::abs(correlation(x.data(), x.data() + lag, kCount)), 5) << lag;
    EXPECT_LT(std::abs(correlation(squares.data(), squares.data() + lag, kCount)), 5) << lag;
    EXPECT_LT(std::abs(correlation(squares.data(), x.data() + lag, kCount)), 5) << lag;
  }
}

TEST(Random, NumbersOfKeysAreIndependent) {
  constexpr int64_t kCount = 50'000;
  const Numbers x = normals(5, kCount);
  for (int bit = 0; bit < 64; ++bit) {
    const Numbers y = normals(5 ^ (uint64_t{1} << bit), kCount);
    EXPECT_LT(std::abs(correlation(x.data(), y.data(), kCount)), 5) << bit;
  }
}

TEST(Random, UniformNumbersAreUniform) {
  constexpr int64_t kCount = 400'000;
  Numbers x(kCount);
  std::vector<double> wide(kCount);
  simd_kernel().uniforms(3, x.data(), kCount);
  simd_kernel().wide_uniforms(4, wide.data(), kCount);
  const auto cdf = [](double u) { return u; };
  EXPECT_LT(kolmogorov(x, cdf), 2.3);
  EXPECT_LT(kolmogorov(wide, cdf), 2.3);
  EXPECT_TRUE(std::all_of(x.begin(), x.end(), [](float u) { return u >= 0 && u < 1; }));
  EXPECT_TRUE(std::all_of(wide.begin(), wide.end(), [](double u) { return u >= 0 && u < 1; }));
}

TEST(Random, WordsAreSplitMix64) {
  double u[40];
  const uint64_t key = 0xfedcba9876543210;
  simd_kernel().wide_uniforms(key, u, 40);
  for (uint64_t i = 0; i < 40; ++i) {
    const uint64_t word = mix64(mix64(key) + i * 0x9e3779b97f4a7c15);
    EXPECT_EQ(u[i], static_cast<double>(word >> 12) * 0x1p-52) << i;
  }
}

class RandomOn : public ::testing::TestWithParam<const SimdKernel*> {};

TEST_P(RandomOn, NormalNumbersAreThoseOfEveryInstructionSet) {
  for (uint64_t key = 0; key < 4; ++key) {
    const Numbers x = normals(mix64(key), 100'000), y = normals(mix64(key), 100'000, *GetParam());
    EXPECT_EQ(std::memcmp(x.data(), y.data(), x.size() * sizeof(float)), 0);
  }
}

TEST_P(RandomOn, ShorterIsAPrefixAndNothingElseIsWritten) {
  const testing::GuardedMemory guarded;
  constexpr int64_t kMost = 150;
  float x[kMost], u[kMost];
  double wide[kMost];
  GetParam()->normals(9, x, kMost);
  GetParam()->uniforms(9, u, kMost);
  GetParam()->wide_uniforms(9, wide, kMost);
  for (int64_t count = 0; count < kMost; ++count) {
    const auto bytes = static_cast<size_t>(count) * sizeof(float);
    // Before the page that nobody may touch, at an address of no alignment.
    const int64_t before = 160 - count;
    const at::Tensor memory = at::full({160}, 7.0, at::kFloat);
    const at::Tensor longs = at::full({160}, 7.0, at::kDouble);
    float* const place = memory.data_ptr<float>() + before;
    GetParam()->normals(9, place, count);
    ASSERT_EQ(std::memcmp(place, x, bytes), 0) << count;
    GetParam()->uniforms(9, place, count);
    ASSERT_EQ(std::memcmp(place, u, bytes), 0) << count;
    GetParam()->wide_uniforms(9, longs.data_ptr<double>() + before, count);
    ASSERT_EQ(std::memcmp(longs.data_ptr<double>() + before, wide, 2 * bytes), 0) << count;
    ASSERT_TRUE((memory.slice(0, 0, before) == 7).all().item<bool>()) << count;
    ASSERT_TRUE((longs.slice(0, 0, before) == 7).all().item<bool>()) << count;
  }
}

INSTANTIATE_TEST_SUITE_P(All, RandomOn, ::testing::ValuesIn(available_simd_kernels()),
                         [](const auto& instance) { return std::string(instance.param->name); });

}  // namespace
}  // namespace crais
