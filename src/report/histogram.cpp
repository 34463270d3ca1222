#include "report/histogram.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

namespace crais {
namespace {

constexpr double kFewestBins = 5, kMostBins = 60;
constexpr double kLargest = 1e100;  // differences of larger values may not be finite

}  // namespace

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

Drawing drawing_of(const Histogram& histogram) {
  const Bins bins = bins_of(histogram.values);
  std::ostringstream settings;
  settings << "unset key\nset grid y lc rgb '#dddddd'\nset border 3\nset tics nomirror\n"
           << "set style fill solid 0.8 border -1\nset boxwidth " << bins.width
           << " absolute\nset yrange [0:]\nset title " << gnuplot_text(histogram.title)
           << " noenhanced\nset xlabel " << gnuplot_text(histogram.x_label)
           << " noenhanced\nset ylabel " << gnuplot_text(histogram.y_label)
           << " noenhanced\n$bins << EOD\n";
  settings.precision(17);
  for (size_t i = 0; i < bins.counts.size(); ++i)
    settings << bins.low + (static_cast<double>(i) + 0.5) * bins.width << ' ' << bins.counts[i]
             << '\n';
  settings << "EOD\n";
  Drawing drawing;
  drawing.settings = settings.str();
  drawing.commands = "plot $bins using 1:2 with boxes lc rgb '#1f77b4'\n";
  return half_page(std::move(drawing));
}

}  // namespace crais
