// Passes over particles are what ATen computes, on every instruction set.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <tuple>

#include "core/affine_map.h"
#include "core/particles.h"
#include "core/rng.h"
#include "simd/simd_kernel.h"
#include "support/guarded_memory.h"
#include "transitions/metropolis.h"

namespace crais {
namespace {

class Passes : public ::testing::TestWithParam<const SimdKernel*> {
 protected:
  at::Tensor randn(at::IntArrayRef sizes) { return at::randn(sizes, rng_); }

  testing::GuardedMemory guarded_;
  at::Generator rng_ = make_generator(1);
};

INSTANTIATE_TEST_SUITE_P(All, Passes, ::testing::ValuesIn(available_simd_kernels()),
                         [](const auto& instance) { return std::string(instance.param->name); });

TEST_P(Passes, SquaredNorms) {
  for (const int64_t dim : {1, 2, 15, 16, 17, 31, 32, 50, 64, 100}) {
    const at::Tensor x = randn({7, dim});
    at::Tensor found = at::empty({7}, at::kDouble), fastest = at::empty({7}, at::kDouble);
    GetParam()->squared_norms(x.data_ptr<float>(), 7, dim, found.data_ptr<double>());
    simd_kernel().squared_norms(x.data_ptr<float>(), 7, dim, fastest.data_ptr<double>());
    EXPECT_TRUE(at::allclose(found, x.to(at::kDouble).square().sum(-1), 1e-6, 0)) << dim;
    EXPECT_TRUE(at::equal(found, fastest)) << dim;
  }
}

TEST_P(Passes, KickAndDrift) {
  for (const int64_t dim : {1, 3, 4, 7, 8, 15, 16, 17, 50}) {
    const at::Tensor p = randn({5, dim}), g = randn({5, dim}), e = randn({5, dim});
    const at::Tensor a = randn({5}), b = randn({5}), c = randn({5});
    at::Tensor found_p = at::empty({5, dim}), found_e = at::empty({5, dim}),
               fastest_p = at::empty({5, dim}), fastest_e = at::empty({5, dim});
    for (const auto& [kernel, out_p, out_e] :
         {std::tuple(GetParam(), found_p, found_e), {&simd_kernel(), fastest_p, fastest_e}})
      kernel->kick_and_drift(p.data_ptr<float>(), g.data_ptr<float>(), e.data_ptr<float>(),
                             a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), 5, dim,
                             out_p.data_ptr<float>(), out_e.data_ptr<float>());
    const at::Tensor kicked = p + a.unsqueeze(1) * g - b.unsqueeze(1) * e;
    EXPECT_TRUE(at::allclose(found_p, kicked, 1e-6, 1e-6)) << dim;
    EXPECT_TRUE(at::allclose(found_e, e + 2 * c.unsqueeze(1) * kicked, 1e-6, 1e-6)) << dim;
    EXPECT_TRUE(at::equal(found_p, fastest_p) && at::equal(found_e, fastest_e)) << dim;
  }
}

TEST_P(Passes, TrianglesMultiply) {
  for (const int64_t dim : {1, 3, 15, 16, 17, 32, 50, 64, 65, 100}) {
    const at::Tensor lower = randn({dim, dim}).tril(), start = randn({dim});
    for (const bool transposed : {false, true}) {
      const Triangle shape{dim, transposed};
      const at::Tensor matrix = transposed ? lower.t().contiguous() : lower;
      at::Tensor packed = at::zeros({shape.packed_size()});
      packed.slice(0, 0, dim).copy_(start);
      int64_t at = 16 * shape.blocks();
      for (int64_t j = 0; j < dim; ++j) {
        const int64_t begin = 16 * shape.first_block(j), end = 16 * shape.end_block(j);
        const at::Tensor row = matrix[j].slice(0, begin, std::min(end, dim));
        packed.slice(0, at, at + row.size(0)).copy_(row);
        at += end - begin;
      }
      ASSERT_EQ(at, packed.size(0));
      for (int64_t rows = 1; rows <= 9; ++rows) {
        const at::Tensor x = randn({rows, dim});
        at::Tensor found = at::empty({rows, dim});
        GetParam()->multiply(shape, packed.data_ptr<float>(), x.data_ptr<float>(), rows,
                             found.data_ptr<float>());
        const at::Tensor exact =
            start.to(at::kDouble) + at::mm(x.to(at::kDouble), matrix.to(at::kDouble));
        EXPECT_LT((found - exact).abs().max().item<double>(), 2e-5) << dim << " " << rows;
      }
    }
  }
}

TEST_P(Passes, GramsOfBfloat16) {
  for (const int64_t dim : {1, 15, 16, 50, 784})
    for (const int64_t rows : {1, 3, 4, 5, 50}) {
      const at::Tensor x = randn({rows, dim}).to(at::kBFloat16), scale = at::rand({dim}, rng_);
      at::Tensor found = at::empty({rows, rows}), scratch = at::empty({gram_scratch(rows, dim)});
      GetParam()->gram(reinterpret_cast<const uint16_t*>(x.data_ptr<at::BFloat16>()),
                       scale.data_ptr<float>(), rows, dim, scratch.data_ptr<float>(),
                       found.data_ptr<float>());
      const at::Tensor scaled = x.to(at::kDouble) * scale;
      EXPECT_TRUE(at::allclose(found.to(at::kDouble), at::mm(scaled, scaled.t()), 1e-4, 1e-4))
          << rows << " " << dim;
      EXPECT_TRUE(at::equal(found, found.t()));
    }
}

TEST(FloatPasses, TrianglesOfABaseAreThoseOfDoubles) {
  at::Generator rng = make_generator(2);
  for (const int64_t dim : {3, 50, 130}) {
    const at::Tensor scale =
        at::randn({4, dim, dim}, rng).tril(-1) / 8 + at::diag_embed(at::rand({4, dim}, rng) + 0.5);
    const at::Tensor loc = at::randn({4, dim}, rng), e = at::randn({4, 7, dim}, rng);
    const AffineMap map(loc, scale), wide(loc.to(at::kDouble), scale.to(at::kDouble));
    const auto expect_near = [](const at::Tensor& found, const at::Tensor& exact) {
      EXPECT_LT((found - exact).abs().max().item<double>(), 1e-5);
    };
    expect_near(map.to_z(e), wide.to_z(e.to(at::kDouble)));
    expect_near(map.pull_back(e), wide.pull_back(e.to(at::kDouble)));
    const at::Tensor across = e.transpose(0, 2).contiguous().transpose(0, 2);  // ATen's
    expect_near(map.to_z(across), wide.to_z(e.to(at::kDouble)));
    expect_near(map.pull_back(across), wide.pull_back(e.to(at::kDouble)));
  }
}

TEST(FloatPasses, KicksAreThoseOfDoubles) {
  at::Generator rng = make_generator(3);
  const auto wide = [](const at::Tensor& x) { return x.to(at::kDouble); };
  const at::Tensor p = at::randn({3, 5, 20}, rng), e = at::randn({3, 5, 20}, rng),
                   g = at::randn({3, 5, 20}, rng);
  const at::Tensor shared = at::rand({3, 1}, rng, at::kDouble).expand({3, 5}),
                   own = at::rand({3, 5}, rng, at::kDouble);
  for (const at::Tensor& step : {at::rand({3, 1, 1}, rng), at::rand({3, 5, 1}, rng)})
    for (const at::Tensor& weight : {shared, own}) {
      const PathPoint point{own, 1 - weight, weight};
      const at::Tensor found = kicked(p, step, point, {e, own, own, g, {}});
      const Particles exactly{wide(e), own, own, wide(g), {}};
      const at::Tensor exact = kicked(wide(p), wide(step), point, exactly);
      EXPECT_LT((found - exact).abs().max().item<double>(), 1e-6);
      const Drifted both = kicked_and_drifted(p, step, point, {e, own, own, g, {}}),
                    exact_both = kicked_and_drifted(wide(p), wide(step), point, exactly);
      EXPECT_TRUE(at::equal(both.p, found) && at::equal(exact_both.p, exact));
      EXPECT_LT((both.e - exact_both.e).abs().max().item<double>(), 2e-6);
      EXPECT_TRUE(at::allclose(exact_both.e, exactly.e + 2 * wide(step) * exact, 0, 1e-14));
    }
}

}  // namespace
}  // namespace crais
