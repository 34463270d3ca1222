#include "report/scatter.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "report/gnuplot.h"

namespace crais {
namespace {

constexpr int kPanelWidth = 320;  // pixels

/// A line of hardly any length, with round ends, for each point: a third of the bytes of a symbol.
std::string dots(const ScatterPanel& panel, const Window& window) {
  std::ostringstream block;
  block.precision(5);
  const double length = 1e-3 * (window.right - window.left);
  for (size_t i = 0; i < panel.x.size(); ++i) {
    const double x = panel.x[i], y = panel.y[i];
    if (x >= window.left && x <= window.right && y >= window.bottom && y <= window.top)
      block << x << ' ' << y << '\n' << x + length << ' ' << y << "\n\n";
  }
  return block.str();
}

/// The grid as gnuplot reads it, and the commands that turn it into $contours.
std::string contour_settings(const Contours& contours, const Window& window) {
  const size_t rows = contours.values.size() / contours.columns;
  std::ostringstream text;
  text.precision(6);
  text << "$grid << EOD\n";
  for (size_t i = 0; i < rows; ++i) {
    const double v = static_cast<double>(i) / static_cast<double>(rows - 1);
    for (size_t j = 0; j < contours.columns; ++j) {
      const double u = static_cast<double>(j) / static_cast<double>(contours.columns - 1);
      text << window.left + u * (window.right - window.left) << ' '
           << window.bottom + v * (window.top - window.bottom) << ' '
           << contours.values[i * contours.columns + j] << '\n';
    }
    text << '\n';
  }
  text << "EOD\nset contour base\nunset surface\nset cntrparam levels discrete ";
  for (size_t i = 0; i < contours.levels.size(); ++i)
    text << (i > 0 ? "," : "") << contours.levels[i];
  text << "\nset table $contours\nsplot $grid using 1:2:3 with lines\nunset table\n"
       << "unset contour\nset surface\n";
  return text.str();
}

}  // namespace

Drawing drawing_of(const Scatter& scatter) {
  const Window& w = scatter.window;
  const size_t columns = std::min(scatter.columns, scatter.panels.size());
  const size_t rows = (scatter.panels.size() + columns - 1) / columns;
  const double shape = (w.top - w.bottom) / (w.right - w.left);
  const int panel_height =
      40 + static_cast<int>(std::lround(std::clamp(shape, 0.4, 1.6) * (kPanelWidth - 40)));
  Drawing drawing;
  drawing.width = kPanelWidth * static_cast<int>(columns);
  drawing.height = 40 + panel_height * static_cast<int>(rows);
  std::ostringstream settings, commands;
  settings << "set key off\nset size ratio -1\nset border lc rgb '#888888'\n"
           << "set tics nomirror scale 0.5 font ',10' tc rgb '#555555'\n"
           << "set xtics autofreq\nset xrange [" << w.left << ":" << w.right << "]\nset yrange ["
           << w.bottom << ":" << w.top << "]\n";
  const bool has_contours = scatter.contours.columns > 1;
  if (has_contours) settings << contour_settings(scatter.contours, w);
  commands << "set multiplot layout " << rows << "," << columns << " title "
           << gnuplot_text(scatter.title) << " noenhanced\n";
  for (size_t p = 0; p < scatter.panels.size(); ++p) {
    const std::string points = dots(scatter.panels[p], w);
    std::string drawn;
    if (has_contours) drawn = "$contours using 1:2 with lines lc rgb '#ff7f0e' lw 1";
    if (!points.empty()) {
      settings << "$panel" << p << " << EOD\n" << points << "EOD\n";
      drawn += (drawn.empty() ? "" : ", ") + std::string("$panel") + std::to_string(p) +
               " using 1:2 with lines lc rgb '#1f77b4' lw 2";
    }
    commands << "set title " << gnuplot_text(scatter.panels[p].title)
             << " noenhanced font ',11' offset 0,-0.7\nplot " << (drawn.empty() ? "NaN" : drawn)
             << "\n";
  }
  commands << "unset multiplot\n";
  drawing.settings = settings.str();
  drawing.commands = commands.str();
  return drawing;
}

bool write_scatter(const std::filesystem::path& stem, const Scatter& scatter) {
  return write_drawing(stem, drawing_of(scatter));
}

}  // namespace crais
