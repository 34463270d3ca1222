#include "report/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <utility>

#include "report/svg.h"
#include "util/error.h"

namespace crais {
namespace {

constexpr double kWidth = 640, kPanelHeight = 280, kMargin = 24;  // pixels
constexpr double kTitle = 22, kRow = 20, kSample = 20;            // pixels of the legend
constexpr size_t kMostMarkers = 60;  // a curve of more points is drawn without markers

/// The look of a series, distinct for colour-blind readers [Okabe & Ito 2008] and in grey.
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

/// A point with the ends of its error bar.
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

/// Axes that all points and bars fit on.
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

/// Draws a panel below `top`. Returns its lower end.
double draw_panel(Svg& svg, const Plot& plot, double top, const Axis& x, const Axis& y) {
  const double left = Panel::left_of(y, kPanelHeight), width = kWidth - left - kMargin;
  svg.text(left, top + kTitle, plot.title, width, kTitleStyle);
  std::vector<std::vector<Shown>> shown;
  double row = top + kTitle, end = kWidth;  // position in the legend
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

constexpr double kFewestBins = 5, kMostBins = 60;
constexpr double kLargest = 1e100;  // differences of larger values might not be finite

constexpr double kPanelWidth = 320, kGap = 12, kPanelTop = 30;  // pixels
constexpr double kTallest = 1.6;                                // height of a panel over its width

struct Corner {
  double x, y, value;
};

/// The contour lines in one cell of the grid (marching squares). `corners` are in circular order.
std::string crossings(const Panel& panel, const std::array<Corner, 4>& corners, double level) {
  std::string lines;
  bool is_open = false;
  for (size_t i = 0; i < corners.size(); ++i) {
    const Corner &a = corners[i], &b = corners[(i + 1) % corners.size()];
    if ((a.value < level) == (b.value < level)) continue;
    const double share = (level - a.value) / (b.value - a.value);
    lines += (is_open ? "L" : "M") + panel.at(a.x + share * (b.x - a.x), a.y + share * (b.y - a.y));
    is_open = !is_open;
  }
  return lines;
}

std::string lines_of(const Contours& contours, const Window& w, const Panel& panel) {
  const size_t columns = contours.columns, rows = contours.values.size() / columns;
  const auto corner = [&](size_t i, size_t j) -> Corner {
    const double u = static_cast<double>(j) / static_cast<double>(columns - 1);
    const double v = static_cast<double>(i) / static_cast<double>(rows - 1);
    return {w.left + u * (w.right - w.left), w.bottom + v * (w.top - w.bottom),
            contours.values[i * columns + j]};
  };
  std::string lines;
  for (size_t i = 0; i + 1 < rows; ++i)
    for (size_t j = 0; j + 1 < columns; ++j)
      for (const double level : contours.levels)
        lines += crossings(
            panel, {corner(i, j), corner(i, j + 1), corner(i + 1, j + 1), corner(i + 1, j)}, level);
  return lines;
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
Bins bins_of(const std::vector<double>& values) {
  std::vector<double> sorted;
  std::copy_if(values.begin(), values.end(), std::back_inserter(sorted),
               [](double value) { return std::abs(value) < kLargest; });
  if (sorted.empty()) return {0.0, 1.0, {}};
  std::sort(sorted.begin(), sorted.end());
  const size_t count = sorted.size();
  const double range = sorted.back() - sorted.front();
  if (!(range > 0)) return {sorted.front() - 0.5, 1.0, {static_cast<double>(count)}};
  const double middle = sorted[3 * count / 4] - sorted[count / 4];
  const double wanted = 2 * middle / std::cbrt(static_cast<double>(count));
  const double number =
      std::ceil(std::clamp(wanted > 0 ? range / wanted : kMostBins, kFewestBins, kMostBins));
  Bins bins{sorted.front(), range / number, {}};
  bins.counts.resize(static_cast<size_t>(number));
  for (const double value : sorted) {
    const auto bin = static_cast<size_t>((value - bins.low) / bins.width);
    bins.counts[std::min(bin, bins.counts.size() - 1)] += 1;
  }
  return bins;
}

std::string svg_of(const Histogram& histogram) {
  constexpr double kTop = 36;  // pixels
  const Bins bins = bins_of(histogram.values);
  const auto end = [&](size_t bin) { return bins.low + static_cast<double>(bin) * bins.width; };
  Axis x{histogram.x_label};
  x.fit({bins.low, end(bins.counts.size())});
  Axis y{histogram.y_label};
  y.is_whole = true;
  y.high = 1.05 * *std::max_element(bins.counts.begin(), bins.counts.end());
  const double left = Panel::left_of(y, kPanelHeight), width = kWidth - left - kMargin;
  const Panel panel({left, kTop, width, kPanelHeight}, x, y);
  Svg svg;
  svg.text(left, kTop - 14, histogram.title, width, kTitleStyle);
  panel.draw(svg);
  std::string bars;
  for (size_t i = 0; i < bins.counts.size(); ++i)
    if (bins.counts[i] > 0)
      bars += "M" + panel.at(end(i), 0) + "L" + panel.at(end(i), bins.counts[i]) + "L" +
              panel.at(end(i + 1), bins.counts[i]) + "L" + panel.at(end(i + 1), 0) + "Z";
  svg.path(bars, R"(fill="#0072b2" stroke="#fff" stroke-width="0.5")");
  return svg.content(kWidth, kTop + kPanelHeight + Panel::below(x));
}
std::string svg_of(const Scatter& scatter) {
  const Window& w = scatter.window;
  const Axis x{"", false, w.left, w.right}, y{"", false, w.bottom, w.top};
  const double shape = (w.top - w.bottom) / (w.right - w.left);
  const double left = Panel::left_of(y, kPanelWidth), room = kPanelWidth - left - kGap;
  const double width = std::min(room, room * kTallest / shape), height = width * shape;
  const size_t columns = std::clamp<size_t>(scatter.panels.size(), 1, scatter.columns);
  const double above = kPanelTop, step = kPanelTop + height + Panel::below(x);
  Svg svg;
  svg.text(left, above - 8, scatter.title, static_cast<double>(columns) * kPanelWidth - left,
           kTitleStyle);
  for (size_t p = 0; p < scatter.panels.size(); ++p) {
    const double right = static_cast<double>(p % columns) * kPanelWidth;
    const auto row = p / columns;
    const double down = static_cast<double>(row) * step;
    const Panel panel({right + left, above + down + kPanelTop, width, height}, x, y);
    svg.text(right + left, above + down + kPanelTop - 8, scatter.panels[p].title, room, "");
    panel.draw(svg);
    if (scatter.contours.columns > 1 && p == 0)
      svg.path(lines_of(scatter.contours, w, panel),
               R"(id="contours" fill="none" stroke="#d55e00" stroke-linecap="round")");
    else if (scatter.contours.columns > 1)
      svg.again("contours", right, down);
    std::string dots;
    for (size_t i = 0; i < scatter.panels[p].x.size(); ++i) {
      const double at_x = scatter.panels[p].x[i], at_y = scatter.panels[p].y[i];
      if (at_x >= w.left && at_x <= w.right && at_y >= w.bottom && at_y <= w.top)
        dots += "M" + panel.at(at_x, at_y) + "h.1";
    }
    svg.path(dots, R"(stroke="#0072b2" stroke-width="2.5" stroke-linecap="round")");
  }
  const size_t rows = (scatter.panels.size() + columns - 1) / columns;
  return svg.content(static_cast<double>(columns) * kPanelWidth,
                     above + static_cast<double>(rows) * step);
}

}  // namespace crais
