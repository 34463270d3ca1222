#include "report/plot.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <utility>

#include "report/svg.h"
#include "util/error.h"

namespace crais {
namespace {

constexpr double kWidth = 640, kPanelHeight = 280, kMargin = 24;  // pixels
constexpr double kTitle = 22, kRow = 20, kSample = 20;            // of the legend
constexpr size_t kMostMarkers = 60;  // a curve of more points is drawn as a line alone

/// How a series looks: apart to all eyes (Okabe and Ito, 2008), and in grey.
struct Look {
  const char *colour, *marker;
};

constexpr Look kLooks[] = {{"#0072b2", "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0"},
                           {"#d55e00", "m-3-3h6v6h-6z"},
                           {"#009e73", "m0-4l4 7h-8z"},
                           {"#cc79a7", "m0-4.5l4.5 4.5-4.5 4.5-4.5-4.5z"},
                           {"#e69f00", "m0 4l4-7h-8z"},
                           {"#56b4e9", "m-3-3l6 6m0-6l-6 6"},
                           {"#000000", "m-4 0h8m-4-4v8"},
                           {"#808080", "m-3-3h6l-6 6h6z"}};
static_assert(std::size(kLooks) == kMostSeries);

/// A point with the ends of its bar.
struct Shown {
  double x, y, low, high;
};

std::vector<Shown> shown_of(const Plot& plot, const Series& series) {
  std::vector<Shown> shown;
  for (size_t i = 0; i < series.x.size(); ++i) {
    const double x = series.x[i], y = series.y[i];
    if (!can_show(x, plot.log_x) || !can_show(y, plot.log_y)) continue;
    const bool has_bar = i < series.error.size() && can_show(y + series.error[i], plot.log_y);
    const double error = has_bar ? series.error[i] : 0.0;
    shown.push_back({x, y, plot.log_y ? std::max(y - error, 0.3 * y) : y - error, y + error});
  }
  return shown;
}

bool has_markers(const Series& series) {
  return !is_curve(series) || series.x.size() <= kMostMarkers;
}

/// The axes that all points and bars fit on.
std::pair<Axis, Axis> axes_of(const Plot& plot) {
  Axis x{plot.x_label, plot.log_x}, y{plot.y_label, plot.log_y};
  std::vector<double> xs, ys;
  for (const Series& series : plot.series)
    for (const Shown& one : shown_of(plot, series)) {
      xs.push_back(one.x);
      ys.insert(ys.end(), {one.low, one.high});
    }
  x.fit(xs);
  y.fit(ys);
  return {x, y};
}

void draw(Svg& svg, const Look& look, const std::string& bars, const std::string& line,
          const std::string& markers) {
  const std::string colour = std::string("\"") + look.colour + "\"";
  svg.path(bars, "stroke=" + colour);
  svg.path(line, "fill=\"none\" stroke-width=\"1.8\" stroke-linejoin=\"round\" stroke=" + colour);
  svg.path(markers, "fill=" + colour + " stroke-width=\"1.4\" stroke=" + colour);
}

/// Draws a panel below `top`; where it ends.
double draw_panel(Svg& svg, const Plot& plot, double top, const Axis& x, const Axis& y) {
  const double left = Panel::left_of(y, kPanelHeight), width = kWidth - left - kMargin;
  svg.text(left, top + kTitle, plot.title, width, kTitleStyle);
  std::vector<std::vector<Shown>> shown;
  double row = top + kTitle, end = kWidth;  // of the legend
  for (size_t i = 0; i < plot.series.size(); ++i) {
    const Series& series = plot.series[i];
    shown.push_back(shown_of(plot, series));
    if (shown[i].empty() || series.name.empty()) continue;
    const double wide = kSample + text_width(series.name) + kMargin;
    const bool is_new = end + wide > kWidth;
    row += is_new ? kRow : 0;
    const double begin = is_new ? left : end, middle = row - 4;
    end = begin + wide;
    draw(svg, kLooks[i], "", is_curve(series) ? "M" + point(begin, middle) + "h14" : "",
         has_markers(series) ? "M" + point(begin + 7, middle) + kLooks[i].marker : "");
    svg.text(begin + kSample, row, series.name, width - kSample, "");
  }
  const Panel panel({left, row + 14, width, kPanelHeight}, x, y);
  panel.draw(svg);
  for (size_t i = 0; i < shown.size(); ++i) {
    std::string bars, line, markers;
    for (const Shown& one : shown[i]) {
      const std::string at = panel.at(one.x, one.y);
      if (one.low < one.high)
        bars += "M" + panel.at(one.x, one.low) + "m-3 0h6m-3 0L" + panel.at(one.x, one.high) +
                "m-3 0h6";
      if (is_curve(plot.series[i])) line += (line.empty() ? "M" : "L") + at;
      if (has_markers(plot.series[i])) markers += "M" + at + kLooks[i].marker;
    }
    draw(svg, kLooks[i], bars, line, markers);
  }
  return row + 14 + kPanelHeight + Panel::below(x);
}

}  // namespace

bool is_curve(const Series& series) {
  return series.joined && std::adjacent_find(series.x.begin(), series.x.end(),
                                             std::greater_equal<>()) == series.x.end();
}

std::vector<Plot> panels_of(const Plot& plot) {
  const size_t count = plot.series.size();
  const size_t panels = std::max<size_t>(1, (count + kMostSeries - 1) / kMostSeries);
  std::vector<Plot> all(panels, plot);
  for (size_t p = 0; p < panels; ++p) {
    const auto from = plot.series.begin() + static_cast<std::ptrdiff_t>(p * count / panels);
    const auto to = plot.series.begin() + static_cast<std::ptrdiff_t>((p + 1) * count / panels);
    all[p].series.assign(from, to);
    if (panels > 1)
      all[p].title += " (" + std::to_string(p + 1) + " of " + std::to_string(panels) + ")";
  }
  return all;
}

bool has_points(const Plot& plot) {
  return std::any_of(plot.series.begin(), plot.series.end(),
                     [&](const Series& series) { return !shown_of(plot, series).empty(); });
}

std::string svg_of(const Plot& plot) {
  if (!has_points(plot)) throw internal_error("plot '" + plot.title + "' has no points");
  const auto [x, y] = axes_of(plot);
  Svg svg;
  double height = 0;
  for (const Plot& panel : panels_of(plot)) height = draw_panel(svg, panel, height, x, y);
  return svg.content(kWidth, height);
}

}  // namespace crais
