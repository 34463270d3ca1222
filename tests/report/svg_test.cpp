#include "report/svg.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "report/plot.h"
#include "util/error.h"

namespace crais {
namespace {

std::string labels_of(const Axis& axis, double count) {
  std::string labels;
  for (const Tick& tick : ticks_of(axis, count)) labels += (labels.empty() ? "" : " ") + tick.label;
  return labels;
}

/// The numbers of a path, such as the first with this beginning of its element.
std::vector<double> numbers_after(const std::string& svg, const std::string& beginning) {
  std::string shape = svg.substr(svg.find(beginning) + beginning.size());
  shape = shape.substr(0, shape.find('"'));
  for (char& c : shape)
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) c = ' ';
  std::istringstream text(shape);
  std::vector<double> numbers;
  for (double number = 0; text >> number;) numbers.push_back(number);
  return numbers;
}

TEST(Axis, HasRoundTicks) {
  EXPECT_EQ(labels_of({"", false, -0.04, 1.04}, 6), "0.0 0.2 0.4 0.6 0.8 1.0");
  EXPECT_EQ(labels_of({"", false, -130, 20}, 4), "-100 -50 0");
  EXPECT_EQ(labels_of({"", false, 0, 25000}, 5), "0 5,000 10,000 15,000 20,000 25,000");
  EXPECT_EQ(labels_of({"", false, 0, 4e-7}, 4), "0 1e-07 2e-07 3e-07 4e-07");
  EXPECT_EQ(labels_of({"", false, 0, 1.05}, 6), "0.0 0.2 0.4 0.6 0.8 1.0");
  EXPECT_EQ(labels_of({"", false, 0, 1.05, /*is_whole=*/true}, 6), "0 1");
}

TEST(Axis, HasPowersOfTenAsLogarithmicTicks) {
  EXPECT_EQ(labels_of({"", true, 0.5, 2000}, 6), "1 10 100 1,000");
  EXPECT_EQ(labels_of({"", true, 90, 3000}, 6), "100 200 500 1,000 2,000");
  EXPECT_EQ(labels_of({"", true, 2, 9}, 8), "2 4 6 8");
  EXPECT_EQ(labels_of({"", true, 1e-9, 1e6}, 4), "10\u207b\u2078 0.0001 1 10,000");
}

TEST(Axis, FitsAnyNumbersItCanShow) {
  for (const bool is_log : {false, true}) {
    Axis axis{"", is_log};
    EXPECT_FALSE(can_show(NAN, is_log));
    EXPECT_FALSE(can_show(INFINITY, is_log));
    EXPECT_FALSE(can_show(1e300, is_log));
    EXPECT_EQ(can_show(-1, is_log), !is_log);
    EXPECT_EQ(can_show(0, is_log), !is_log);
    for (const std::vector<double>& values : std::vector<std::vector<double>>{
             {1, 1e249}, {1e-249, 1e249}, {3}, {1e20}, {1, 1 + 1e-15}}) {
      axis.fit(values);
      for (const double value : values) {
        ASSERT_TRUE(can_show(value, is_log));
        EXPECT_GE(axis.share(value), 0.0) << value;
        EXPECT_LE(axis.share(value), 1.0) << value;
      }
      EXPECT_LE(ticks_of(axis, 6).size(), 13U);
      for (const Tick& tick : ticks_of(axis, 6)) EXPECT_TRUE(std::isfinite(tick.value));
    }
  }
  Axis axis{"", true};
  axis.fit({1, 100});
  EXPECT_NEAR(axis.share(10), 0.5, 1e-12);
}

TEST(Panel, PutsNumbersInTheirPlaces) {
  const Panel panel({100, 50, 200, 80}, {"", false, 0, 10}, {"", true, 1, 100});
  EXPECT_EQ(panel.at(0, 1), "100 130");
  EXPECT_EQ(panel.at(10, 100), "300 50");
  EXPECT_EQ(panel.at(5, 10), "200 90");
}

TEST(Svg, ShowsMarkupAndControlCharacters) {
  Svg svg;
  svg.text(1, 2, "<b>&\"\x01\n", 500, "");
  const std::string content = svg.content(10, 10);
  EXPECT_NE(content.find("&lt;b&gt;&amp;&quot;\\x01\\n</text>"), std::string::npos) << content;
}

TEST(Svg, ShortensWordsBetweenCharacters) {
  Svg svg;
  std::string words;
  for (int i = 0; i < 100; ++i) words += "\u00e9";
  svg.text(0, 0, words, 100, "");
  const std::string content = svg.content(10, 10);
  const size_t begin = content.find("\u00e9"), end = content.find("</text>");
  const std::string shown = content.substr(begin, end - begin);
  EXPECT_TRUE(shown.ends_with("\u00e9\u2026")) << shown;
  EXPECT_LE(text_width(shown), 100);
  EXPECT_GT(text_width(shown), 80);
}

TEST(Plot, DrawsPointsAndBarsThatCanBeShown) {
  Plot plot{"Title", "x", "y", true, true, {}};
  plot.series.push_back({"one", {1, 10, 100, 1000}, {1, -1, NAN, 1}, {0.5, 0, 0, 5}});
  EXPECT_TRUE(has_points(plot));
  const std::string svg = svg_of(plot);
  EXPECT_EQ(svg, svg_of(plot));
  // The bars of two points: from and to, with both ends of each; the second ends at 0.3 of its
  // point.
  const size_t bars = svg.find("m-3 0h6m-3 0L");
  ASSERT_NE(bars, std::string::npos);
  EXPECT_NE(svg.find("m-3 0h6m-3 0L", bars + 1), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  plot.series = {{"none", {1, 10}, {-1, INFINITY}, {}}};
  EXPECT_FALSE(has_points(plot));
  EXPECT_THROW(svg_of(plot), Error);
}

TEST(Plot, NamesSeriesAboveThePanel) {
  Plot plot{"Title", "x", "y", false, false, {}};
  for (int i = 0; i < 8; ++i)
    plot.series.push_back({"a rather long name, number " + std::to_string(i), {0, 1}, {0, 1}, {}});
  const std::string svg = svg_of(plot);
  const auto height_of = [](const std::string& picture) {
    return std::stod(picture.substr(picture.find("height=\"") + 8));
  };
  for (int i = 0; i < 8; ++i)
    EXPECT_NE(svg.find("number " + std::to_string(i) + "</text>"), std::string::npos);
  plot.series.resize(1);
  EXPECT_GT(height_of(svg), height_of(svg_of(plot)) + 40);  // more rows of names, as high a panel
}

TEST(Histogram, DrawsABarForEachBinWithValues) {
  const std::string svg = svg_of(Histogram{"t", "x", "y", {0, 0, 0, 1, 10}});
  const size_t begin = svg.rfind("<path"), end = svg.find("/>", begin);
  const std::string bars = svg.substr(begin, end - begin);
  EXPECT_EQ(std::count(bars.begin(), bars.end(), 'Z'), 2);  // the bins of {0, 0, 0, 1} and {10}
}

TEST(Scatter, DrawsContoursWhereTheLevelIs) {
  // exp(-r^2) is 0.5 at r = 0.8326; the window has 40 numbers a side, x and y alike.
  Scatter scatter{"", {-2, 2, -2, 2}, {41, {}, {0.5}}, {{"", {0}, {0}}}, 1};
  for (int i = 0; i < 41; ++i)
    for (int j = 0; j < 41; ++j)
      scatter.contours.values.push_back(
          std::exp(-0.01 * ((i - 20) * (i - 20) + (j - 20) * (j - 20))));
  const std::string svg = svg_of(scatter);
  const size_t contours = svg.rfind("<path d=\"", svg.find("id=\"contours\""));
  const std::vector<double> line = numbers_after(svg.substr(contours), "<path d=\"");
  const size_t dots = svg.rfind("<path d=\"");
  const std::vector<double> centre = numbers_after(svg.substr(dots), "<path d=\"");
  ASSERT_GT(line.size(), 40U);
  double least = 1e9, most = 0, highest = 1e9, lowest = 0;
  for (size_t i = 0; i + 1 < line.size(); i += 2) {
    const double radius = std::hypot(line[i] - centre[0], line[i + 1] - centre[1]);
    least = std::min(least, radius);
    most = std::max(most, radius);
    highest = std::min(highest, line[i + 1]);
    lowest = std::max(lowest, line[i + 1]);
  }
  EXPECT_LT(most / least, 1.02);  // a circle: both axes have one scale
  EXPECT_NEAR(centre[1], (highest + lowest) / 2, 0.3);
}

}  // namespace
}  // namespace crais
