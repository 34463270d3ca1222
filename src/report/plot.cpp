#include "report/plot.h"

#include <sys/wait.h>

#include <cmath>
#include <cstdio>
#include <iterator>
#include <sstream>

#include "util/error.h"
#include "util/format.h"

namespace crais {
namespace {

namespace fs = std::filesystem;

// Apart for most eyes; as many as an experiment compares.
constexpr const char* kColours[] = {"#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd",
                                    "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf",
                                    "#000000", "#003f5c", "#ffa600"};

constexpr size_t kMostMarkers = 60;  // a curve of more points is drawn as a line alone

/// Text in gnuplot's single quotes.
std::string gnuplot_text(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "''" : std::string(1, c);
  return out + "'";
}

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

std::string script(const fs::path& svg, const fs::path& png, const Plot& plot) {
  std::ostringstream text;
  text.precision(12);
  text << "set encoding utf8\nset key outside right top noenhanced\nset grid lc rgb '#dddddd'\nset "
          "pointsize 0.8\n"
       << "set border 3\nset tics nomirror\nset title " << gnuplot_text(plot.title)
       << " noenhanced\n"
       << "set xlabel " << gnuplot_text(plot.x_label) << " noenhanced\nset ylabel "
       << gnuplot_text(plot.y_label) << " noenhanced\n";
  if (plot.log_x) text << "set logscale x\n";
  if (plot.log_y) text << "set logscale y\nset format y '%g'\n";
  std::string curves;
  size_t number = 0;
  for (const Series& series : plot.series) {
    const std::string block = data_block(plot, series);
    if (block.empty()) continue;
    const std::string name = "$series" + std::to_string(++number);
    text << name << " << EOD\n" << block << "EOD\n";
    const std::string colour =
        std::string(" lc rgb '") + kColours[(number - 1) % std::size(kColours)] + "'";
    const auto draw = [&](const std::string& what) {
      curves += (curves.empty() ? "plot " : ", ") + name + what;
    };
    if (!series.error.empty())  // bars first: they blank what is under their middle
      draw(" using 1:2:3:4 with yerrorbars" + colour + " lw 1 pt -1 notitle");
    draw(std::string(" using 1:2 with ") +
         (series.x.size() > kMostMarkers ? "lines" : "linespoints") + colour + " pt " +
         std::to_string(4 + number % 10) + " lw 1.5 title " + gnuplot_text(series.name));
  }
  if (curves.empty()) throw Error(ErrorKind::kInternal, "plot '" + plot.title + "' has no points");
  text << "set terminal svg size 960,540 dynamic font 'sans-serif,13' background 'white'\nset "
          "output "
       << gnuplot_text(svg.string()) << "\n"
       << curves << "\n"
       << "set terminal pngcairo size 1280,720 font 'sans-serif,13'\nset output "
       << gnuplot_text(png.string()) << "\nreplot\nunset output\n";
  return text.str();
}

}  // namespace

bool write_plot(const fs::path& stem, const Plot& plot) {
  const fs::path svg = stem.string() + ".svg", png = stem.string() + ".png";
  const fs::path new_svg = svg.string() + ".tmp", new_png = png.string() + ".tmp";
  const std::string commands = script(new_svg, new_png, plot);
  if (std::system("command -v gnuplot >/dev/null 2>&1") != 0) return false;
  FILE* gnuplot = popen("gnuplot 2>/dev/null", "w");
  if (!gnuplot) throw Error(ErrorKind::kIo, "gnuplot could not be started");
  std::fwrite(commands.data(), 1, commands.size(), gnuplot);
  const int status = pclose(gnuplot);
  std::error_code ignored;
  if (status != 0 || !fs::exists(new_svg, ignored) || !fs::exists(new_png, ignored)) {
    fs::remove(new_svg, ignored);
    fs::remove(new_png, ignored);
    throw Error(ErrorKind::kIo, "gnuplot failed to draw " + svg.string());
  }
  fs::rename(new_svg, svg);
  fs::rename(new_png, png);
  return true;
}

}  // namespace crais
