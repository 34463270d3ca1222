#include <gtest/gtest.h>

#include <cmath>

#include "io/json.h"
#include "report/plot.h"
#include "support/temporary_folder.h"
#include "util/files.h"

namespace crais {
namespace {

using testing::TemporaryFolder;

int64_t count_of(const std::string& text, const std::string& part) {
  int64_t count = 0;
  for (size_t i = text.find(part); i != std::string::npos; i = text.find(part, i + 1)) ++count;
  return count;
}

TEST(Plot, HasNoMoreSeriesThanColours) {
  Plot plot{"Many", "x", "y", false, false, {}};
  for (int i = 0; i < 8; ++i)
    plot.series.push_back({std::to_string(i), {0, 1}, {1.0 * i, 2.0 * i}, {}});
  ASSERT_EQ(panels_of(plot).size(), 1U);
  EXPECT_EQ(panels_of(plot)[0].title, "Many");
  for (int i = 8; i < 17; ++i)
    plot.series.push_back({std::to_string(i), {0, 1}, {1.0 * i, 2.0 * i}, {}});
  const std::vector<Plot> panels = panels_of(plot);  // 17 series: 5 + 6 + 6
  ASSERT_EQ(panels.size(), 3U);
  std::vector<std::string> names;
  for (const Plot& panel : panels) {
    EXPECT_LE(panel.series.size(), kMostSeries);
    EXPECT_GE(panel.series.size(), 5U);
    for (const Series& series : panel.series) names.push_back(series.name);
  }
  ASSERT_EQ(names.size(), 17U);
  for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ(names[i], std::to_string(i));
  EXPECT_EQ(panels[1].title, "Many (2 of 3)");
}

TEST(Plot, DrawsEveryPanel) {
  Plot plot{"Many", "x", "y", true, true, {}};
  for (int i = 1; i <= 9; ++i)
    plot.series.push_back({"arm " + std::to_string(i), {1, 10}, {1.0 * i, 2.0 * i}, {}});
  const std::string svg = svg_of(plot);
  for (const char* part : {"arm 1", "arm 9", "Many (1 of 2)", "Many (2 of 2)"})
    EXPECT_NE(svg.find(part), std::string::npos) << part;
}

TEST(Plot, JoinsPointsOfGrowingCostAlone) {
  EXPECT_TRUE(is_curve({"cost", {64, 256, 1024}, {3, 1, 2}, {}}));
  EXPECT_FALSE(is_curve({"settings", {64, 1024, 256}, {3, 1, 2}, {}}));
  EXPECT_FALSE(is_curve({"twice the cost", {64, 64, 256}, {3, 1, 2}, {}}));
  EXPECT_FALSE(is_curve({"apart", {64, 256, 1024}, {3, 1, 2}, {}, false}));
}

TEST(Scatter, DrawsParticlesInEachPanelOverContours) {
  Scatter scatter{"Cloud", {-2, 2, -2, 2}, {21, {}, {0.5}}, {}, 2};
  for (int i = 0; i < 21; ++i)
    for (int j = 0; j < 21; ++j) {
      const double x = 0.2 * (j - 10), y = 0.2 * (i - 10);
      scatter.contours.values.push_back(std::exp(-x * x - y * y));
    }
  scatter.panels = {{"it's one", {0, 1}, {0, 1}}, {"outside", {5}, {5}}};
  const std::string svg = svg_of(scatter);
  for (const char* part : {"Cloud", "it's one", "outside", "id=\"contours\"", "#contours"})
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  EXPECT_EQ(count_of(svg, "h.1"), 2);  // two points, and none of the panel that has one outside
}

}  // namespace
}  // namespace crais
