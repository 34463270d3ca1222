#include "report/plot.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <sstream>

#include "report/gnuplot.h"
#include "util/error.h"

namespace crais {
namespace {

// Apart for most eyes.
constexpr const char* kColours[] = {"#1f77b4", "#d62728", "#2ca02c", "#ff7f0e",
                                    "#9467bd", "#8c564b", "#e377c2", "#000000"};
static_assert(std::size(kColours) == kMostSeries);

constexpr size_t kMostMarkers = 60;  // a curve of more points is drawn as a line alone

bool is_drawn(const Plot& plot, double x, double y) {
  return std::isfinite(x) && std::isfinite(y) && (!plot.log_x || x > 0) && (!plot.log_y || y > 0);
}

/// Gnuplot's own format of a data block: x, y, lower and upper end of the bar.
std::string data_block(const Plot& plot, const Series& series) {
  std::ostringstream block;
  for (size_t i = 0; i < series.x.size(); ++i) {
    const double x = series.x[i], y = series.y[i];
    if (!is_drawn(plot, x, y)) continue;
    const double error =
        i < series.error.size() && std::isfinite(series.error[i]) ? series.error[i] : 0.0;
    const double low = plot.log_y ? std::max(y - error, 0.3 * y) : y - error;
    block << x << ' ' << y << ' ' << low << ' ' << y + error << '\n';
  }
  return block.str();
}

/// The axes that all points fit on, with room beside the outermost.
std::string common_range(const Plot& plot, bool of_x) {
  const bool is_log = of_x ? plot.log_x : plot.log_y;
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (const Series& series : plot.series)
    for (size_t i = 0; i < series.x.size(); ++i) {
      if (!is_drawn(plot, series.x[i], series.y[i])) continue;
      const double value = of_x ? series.x[i] : series.y[i];
      least = std::min(least, is_log ? std::log(value) : value);
      most = std::max(most, is_log ? std::log(value) : value);
    }
  if (!(least < most)) return "";
  const double room = 0.05 * (most - least);
  least -= room, most += room;
  std::ostringstream text;
  text << "set " << (of_x ? 'x' : 'y') << "range [" << (is_log ? std::exp(least) : least) << ":"
       << (is_log ? std::exp(most) : most) << "]\n";
  return text.str();
}

/// How the series number `number` (from 1) of a panel is drawn from its data block.
std::string curve(const Series& series, const std::string& block, size_t number) {
  const std::string colour = std::string(" lc rgb '") + kColours[number - 1] + "'";
  std::string text;
  if (!series.error.empty())  // bars first: they blank what is under their middle
    text += block + " using 1:2:3:4 with yerrorbars" + colour + " lw 1 pt -1 notitle, ";
  const std::string style = !is_curve(series)                ? "points"
                            : series.x.size() > kMostMarkers ? "lines"
                                                             : "linespoints";
  return text + block + " using 1:2 with " + style + colour + " pt " +
         std::to_string(4 + number % 10) + " lw 1.5 title " + gnuplot_text(series.name);
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

Drawing drawing_of(const Plot& plot) {
  Drawing drawing;
  std::ostringstream settings;
  settings << "set key outside right top noenhanced\nset grid lc rgb '#dddddd'\n"
           << "set pointsize 0.8\nset border 3\nset tics nomirror\nset xlabel "
           << gnuplot_text(plot.x_label) << " noenhanced\nset ylabel " << gnuplot_text(plot.y_label)
           << " noenhanced\n";
  if (plot.log_x) settings << "set logscale x\n";
  if (plot.log_y) settings << "set logscale y\nset format y '%g'\n";
  const std::vector<Plot> panels = panels_of(plot);
  if (panels.size() > 1) {
    settings << common_range(plot, true) << common_range(plot, false);
    drawing.commands = "set multiplot layout " + std::to_string(panels.size()) + ",1\n";
    drawing.height *= static_cast<int>(panels.size());
  }
  size_t blocks = 0;
  for (const Plot& panel : panels) {
    std::string curves;
    size_t number = 0;
    for (const Series& series : panel.series) {
      const std::string block = data_block(panel, series);
      if (block.empty()) continue;
      const std::string name = "$series" + std::to_string(++blocks);
      settings << name << " << EOD\n" << block << "EOD\n";
      curves += (curves.empty() ? "plot " : ", ") + curve(series, name, ++number);
    }
    if (!curves.empty())
      drawing.commands +=
          "set title " + gnuplot_text(panel.title) + " noenhanced\n" + curves + "\n";
  }
  if (blocks == 0) throw Error(ErrorKind::kInternal, "plot '" + plot.title + "' has no points");
  if (panels.size() > 1) drawing.commands += "unset multiplot\n";
  drawing.settings = settings.str();
  return drawing;
}

bool write_plot(const std::filesystem::path& stem, const Plot& plot) {
  return write_drawing(stem, drawing_of(plot));
}

}  // namespace crais
