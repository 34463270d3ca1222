#include "evaluation/control.h"

#include <gtest/gtest.h>

#include <cmath>

#include "evaluation/chunks.h"
#include "evaluation/summary.h"

namespace crais {
namespace {

using Column = std::vector<double>;

ChunkRun run_of(const char* method, const Column& gap, double std_error, double bias) {
  ChunkRun run{.method = method, .log_normalizer = Column(gap.size(), -5)};
  for (const double one : gap) run.upper.push_back(one - 5);
  run.std_error = run.upper_std_error = Column(gap.size(), std_error);
  run.bias = Column(gap.size(), bias);
  run.ess = Column(gap.size(), 0.5);
  run.flags.resize(gap.size());
  return run;
}

struct Case {
  const char* what;
  Column gap;
  double std_error, bias, real_error;
  std::vector<Doubt> doubts;
};

/// Gaps of 16 images: `few`, and `other` for the rest.
Column gaps(Column few, double other) {
  few.resize(16, other);
  return few;
}

TEST(Control, DoubtsWhatErrorsAndBiasDoNotExplain) {
  const std::vector<Case> cases = {
      {"no gap", gaps({}, 0.01), 0.05, 0, 0.05, {}},
      {"a gap that does not matter", gaps({}, 0.19), 1e-4, 0, 0.05, {}},
      {"a gap that matters", gaps({}, 0.3), 0.05, 0, 0.05, {Doubt::kControl}},
      {"the same, of bias", gaps({}, 0.3), 0.05, -0.1, 0.05, {}},
      {"the same, of errors", gaps({}, 0.3), 0.5, 0, 0.5, {}},
      {"one image, by chance", gaps({1.2}, 0), 0.05, 0, 0.05, {}},
      {"two images", gaps({1.2, 1.2}, 0), 0.05, 0, 0.05, {Doubt::kControl}},
      {"one image, far away", gaps({30}, 0), 0.05, 0, 0.05, {}},
      {"an unknown error", gaps({1.2, 1.2}, 0), NAN, NAN, 0.05, {Doubt::kControl}},
      {"bounds that cross", gaps({}, -0.5), 0.01, 0, 0.01, {}},
      {"harder images", gaps({}, 0), 0.05, 0, 0.16, {Doubt::kHarder}},
  };
  for (const Case& c : cases) {
    RunResults results;
    ChunkResult& images = results.chunks[0];
    images.runs = {run_of("iwae:9", Column(5), 9, 0), run_of("ais", Column(5), c.real_error, 0)};
    images.runs[1].accept_prob = Column(5, 0.8);
    EXPECT_FALSE(control_of(results));
    ChunkResult& control = results.control[1];
    control.runs = {run_of(kControlMethod, c.gap, c.std_error, c.bias)};
    control.base.densities = 3;
    const std::optional<Control> found = control_of(results);
    ASSERT_TRUE(found) << c.what;
    EXPECT_EQ(found->doubts, c.doubts) << c.what;
    EXPECT_EQ(found->images, 16);
    EXPECT_NEAR(found->upper - found->lower, found->gap, 1e-12);
    EXPECT_EQ(found->lower, -5);
    EXPECT_EQ(found->evaluations, 3);
    EXPECT_NEAR(found->real.std_error, c.real_error, 1e-12);
  }
}

TEST(Control, IsAnEighthOfTheImagesWithinBounds) {
  const std::pair<int64_t, int64_t> wanted[] = {{1, 16}, {128, 16}, {160, 20}, {10'000, 32}};
  for (const auto& [images, control] : wanted) EXPECT_EQ(default_control(images), control);
}

TEST(Chunks, OfTheControlFollow) {
  const Chunks chunks{10, 4, 5};
  EXPECT_EQ(chunks.count(), 5);
  for (const int64_t c : {0, 1, 2, 3, 4}) {
    EXPECT_EQ(chunks.is_control(c), c > 2);
    EXPECT_EQ(chunks.begin(c), (c % 3) * 4);
    EXPECT_EQ(chunks.end(c), c == 2 ? 10 : c == 4 ? 5 : (c % 3) * 4 + 4);
  }
}

}  // namespace
}  // namespace crais
