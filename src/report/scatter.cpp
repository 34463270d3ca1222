#include "report/scatter.h"

#include <algorithm>
#include <array>

#include "report/svg.h"

namespace crais {
namespace {

constexpr double kPanelWidth = 320, kGap = 12, kPanelTop = 30;  // pixels
constexpr double kTallest = 1.6;                                // heights of a panel's width

struct Corner {
  double x, y, value;
};

/// The lines of one cell of the grid, from side to side (marching squares). `corners` go around it.
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
