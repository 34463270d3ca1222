#include "report/histogram.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "report/svg.h"

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

std::string svg_of(const Histogram& histogram) {
  constexpr double kWidth = 640, kHeight = 280, kTop = 36, kMargin = 24;  // pixels
  const Bins bins = bins_of(histogram.values);
  const auto end = [&](size_t bin) { return bins.low + static_cast<double>(bin) * bins.width; };
  Axis x{histogram.x_label};
  x.fit({bins.low, end(bins.counts.size())});
  Axis y{histogram.y_label};
  y.is_whole = true;
  y.high = 1.05 * *std::max_element(bins.counts.begin(), bins.counts.end());
  const double left = Panel::left_of(y, kHeight), width = kWidth - left - kMargin;
  const Panel panel({left, kTop, width, kHeight}, x, y);
  Svg svg;
  svg.text(left, kTop - 14, histogram.title, width, kTitleStyle);
  panel.draw(svg);
  std::string bars;
  for (size_t i = 0; i < bins.counts.size(); ++i)
    if (bins.counts[i] > 0)
      bars += "M" + panel.at(end(i), 0) + "L" + panel.at(end(i), bins.counts[i]) + "L" +
              panel.at(end(i + 1), bins.counts[i]) + "L" + panel.at(end(i + 1), 0) + "Z";
  svg.path(bars, R"(fill="#0072b2" stroke="#fff" stroke-width="0.5")");
  return svg.content(kWidth, kTop + kHeight + Panel::below(x));
}

}  // namespace crais
