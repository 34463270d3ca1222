// Particles of chunks that differ in their number.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/log_math.h"
#include "evaluation/summary.h"

namespace crais {
namespace {

ChunkResult chunk_of(int64_t number, const std::vector<double>& log_w) {
  ChunkResult chunk{.chunk = number, .indices = {number}};
  ChunkRun run{.method = "ais"};
  const auto count = static_cast<int64_t>(log_w.size());
  run.particles = WeightedParticles{
      at::arange(2 * count, at::kDouble).view({1, count, 2}) + 100.0 * static_cast<double>(number),
      at::tensor(log_w, at::kDouble).unsqueeze(0), at::zeros({1}, at::kDouble)};
  chunk.runs.push_back(std::move(run));
  return chunk;
}

TEST(KeptParticles, KeepTheMeanWeightOfEachProblemWhereAllChunksHaveSome) {
  RunResults results;
  results.chunks.emplace(0, chunk_of(0, {0.1, -0.7, 0.4}));
  results.chunks.emplace(1, chunk_of(1, {2.0, -1.0, 0.5, 0.25, -INFINITY}));
  const auto kept = kept_particles(results);
  ASSERT_TRUE(kept);
  ASSERT_EQ(kept->z.sizes(), (std::vector<int64_t>{2, 5, 2}));
  const at::Tensor means = log_mean_exp(kept->log_w);
  for (int64_t c = 0; c < 2; ++c) {
    const auto& own = *results.chunks.at(c).runs.front().particles;
    EXPECT_NEAR(means[c].item<double>(), log_mean_exp(own.log_w)[0].item<double>(), 1e-12);
    EXPECT_TRUE(at::equal(kept->z[c].slice(0, 0, own.z.size(1)), own.z[0]));
  }
  EXPECT_TRUE((kept->log_w[0].slice(0, 3) == -INFINITY).all().item<bool>());
  EXPECT_TRUE(kept->z.isfinite().all().item<bool>());
  results.chunks.at(1).runs.front().particles.reset();
  EXPECT_FALSE(kept_particles(results));
  EXPECT_FALSE(kept_particles(RunResults()));
}

}  // namespace
}  // namespace crais
