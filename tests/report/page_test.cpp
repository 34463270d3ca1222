#include "report/page.h"

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

Plot two_curves() {
  Plot plot{"Error's <decline>", "evaluations", "error, nats", true, true, {}};
  plot.series.push_back({"one", {64, 256, 1024}, {1.0, 0.1, 0.01}, {0.1, 0.01, 0.5}});
  plot.series.push_back({"it's two", {64, 256, 1024}, {2.0, -1.0, INFINITY}, {}});
  return plot;
}

TEST(Page, WritesTablesForPeopleAndPrograms) {
  const TemporaryFolder folder;
  Page page(folder.path(), "A <title>");
  page.paragraph("1 < 2 & 3");
  page.table("figures", "Figures", {"arm", "count", "value"},
             {{"a, b", int64_t{12345}, Cell::number(0.123456789, 3)},
              {"c", int64_t{1}, Cell::number(NAN, 3)}});
  page.finish();
  EXPECT_EQ(read_file(folder.path() / "figures.csv"),
            "arm,count,value\n\"a, b\",12345,0.123456789\nc,1,nan\n");
  const nlohmann::json rows = read_json(folder.path() / "figures.json");
  EXPECT_EQ(rows[0]["value"].get<double>(), 0.123456789);
  EXPECT_EQ(rows[0]["count"].get<int64_t>(), 12345);
  EXPECT_TRUE(rows[1]["value"].is_null());
  const std::string html = read_file(folder.path() / "index.html");
  for (const char* part :
       {"A &lt;title&gt;", "1 &lt; 2 &amp; 3", "<td>12,345</td>", "<td>0.123</td>"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
}

TEST(Page, FoldsATableThatFewWillRead) {
  const TemporaryFolder folder;
  Page page(folder.path(), "Folds");
  ::testing::internal::CaptureStdout();
  page.folded_table("all", "Every <setting>", {"arm", "count"},
                    {{"one", int64_t{7531}}, {"two", int64_t{2}}});
  const std::string said = ::testing::internal::GetCapturedStdout();
  page.finish();
  EXPECT_EQ(said, "Every <setting>: 2 rows in " + (folder.path() / "all.csv").string() + "\n");
  EXPECT_EQ(read_file(folder.path() / "all.csv"), "arm,count\none,7531\ntwo,2\n");
  EXPECT_EQ(read_json(folder.path() / "all.json").size(), 2U);
  const std::string html = read_file(folder.path() / "index.html");
  const auto fold = html.find("<details><summary>Every &lt;setting&gt; (2 rows)</summary>");
  const auto cell = html.find("<td>7,531</td>");
  ASSERT_NE(fold, std::string::npos);
  EXPECT_LT(fold, cell);
  EXPECT_LT(cell, html.find("</details>"));
}

TEST(Page, ShowsPlotsInPlaceAndAfterTables) {
  const TemporaryFolder folder;
  Page page(folder.path(), "Plots");
  page.plot("curves", two_curves());
  page.table("late", "Late", {"arm"}, {{"a"}});
  page.finish();
  const std::string svg = read_file(folder.path() / "curves.svg");
  EXPECT_NE(svg.find("it's two"), std::string::npos);
  const std::string html = read_file(folder.path() / "index.html");
  EXPECT_NE(html.find("data:image/svg+xml"), std::string::npos);
  EXPECT_LT(html.find("Late"), html.find("data:image/svg+xml"));
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
