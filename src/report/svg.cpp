#include "report/svg.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "report/html.h"
#include "util/format.h"

namespace crais {
namespace {

constexpr double kBetweenColumns = 56, kBetweenRows = 40, kBetweenLabels = 16;  // pixels

std::string pixels(double value) {
  const std::string text = fixed(value, 1);
  return text.substr(0, text.size() - (text.ends_with(".0") ? 2 : 0));
}

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

std::string shortened(const std::string& words, double room) {
  if (text_width(words) <= room) return words;
  size_t end = words.size();
  while (end > 0 && text_width(words.substr(0, end)) + kFontSize > room) --end;
  return words.substr(0, end) + "\u2026";
}

/// The label of a number that is a multiple of `step`.
std::string label_of(double value, double step) {
  constexpr double kMost = 1e7, kLeast = 1e-5;
  const double exponent = std::floor(std::log10(step) + 1e-9);
  if (std::abs(value) < kMost && step >= 1) return with_commas(std::llround(value));
  if (std::abs(value) < kMost && step >= kLeast) return fixed(value, static_cast<int>(-exponent));
  const double digits = value == 0 ? 1 : std::log10(std::abs(value)) - exponent + 1;
  return significant(value, static_cast<int>(std::clamp(digits, 1.0, 10.0)));
}

/// The label of factor * 10^exponent: "0.02", "50,000", "2x10" with a small 6.
std::string power_label(int factor, int exponent) {
  constexpr int kLeast = -4, kMost = 5;
  if (exponent >= kLeast && exponent <= kMost)
    return label_of(factor * std::pow(10.0, exponent), std::pow(10.0, exponent));
  static const char* const kSmall[] = {"\u2070", "\u00b9", "\u00b2", "\u00b3", "\u2074",
                                       "\u2075", "\u2076", "\u2077", "\u2078", "\u2079"};
  std::string label = factor == 1 ? "10" : std::to_string(factor) + "\u00d710";
  for (const char digit : std::to_string(exponent))
    label += digit == '-' ? "\u207b" : kSmall[digit - '0'];
  return label;
}

std::vector<Tick> even_ticks(const Axis& axis, double count) {
  const double rough = (axis.high - axis.low) / count;
  const double unit = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * unit;
  for (const double factor : {5.0, 2.0, 1.0})
    if (rough <= factor * unit) step = factor * unit;
  if (axis.is_whole) step = std::max(step, 1.0);
  std::vector<Tick> ticks;
  const double first = std::ceil(axis.low / step - 1e-9);
  for (int i = 0; i <= 2 * count && (first + i) * step <= axis.high + 1e-9 * step; ++i)
    ticks.push_back({(first + i) * step, label_of((first + i) * step, step)});
  return ticks;
}

std::vector<Tick> power_ticks(const Axis& axis, double count) {
  const double low = std::log10(axis.low), high = std::log10(axis.high), decades = high - low;
  const std::vector<int> factors =
      decades < std::log10(2.0) * count ? std::vector<int>{1, 2, 5} : std::vector<int>{1};
  const int step = static_cast<int>(std::max(1.0, std::ceil(decades / count)));
  std::vector<Tick> ticks;
  for (int e = static_cast<int>(std::floor(low / step)) * step; e <= high; e += step)
    for (const int factor : factors)
      if (const double value = factor * std::pow(10.0, e); value >= axis.low && value <= axis.high)
        ticks.push_back({value, power_label(factor, e)});
  return ticks;
}

double widest(const std::vector<Tick>& ticks) {
  double width = 0;
  for (const Tick& tick : ticks) width = std::max(width, text_width(tick.label));
  return width;
}

std::vector<Tick> columns_of(const Axis& axis, double width) {
  const double wanted = widest(ticks_of(axis, width / kBetweenColumns)) + kBetweenLabels;
  return ticks_of(axis, width / std::max(kBetweenColumns, wanted));
}

std::vector<Tick> rows_of(const Axis& axis, double height) {
  return ticks_of(axis, height / kBetweenRows);
}

}  // namespace

void Svg::path(const std::string& shape, const std::string& style) {
  if (shape.empty()) return;
  body_ += "<path d=\"" + shape + "\" " + style + "/>\n";
}

void Svg::text(double x, double y, const std::string& words, double room,
               const std::string& style) {
  if (words.empty()) return;
  body_ += "<text x=\"" + pixels(x) + "\" y=\"" + pixels(y) + "\" " + style + ">" +
           escaped(printable(shortened(words, room))) + "</text>\n";
}

void Svg::again(const std::string& id, double right, double down) {
  body_ += "<use href=\"#" + id + "\" x=\"" + pixels(right) + "\" y=\"" + pixels(down) + "\"/>\n";
}

std::string Svg::content(double width, double height) const {
  const std::string size = "width=\"" + pixels(width) + "\" height=\"" + pixels(height) + "\"";
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" " + size + " viewBox=\"0 0 " +
         point(width, height) + "\" font-family=\"sans-serif\" font-size=\"" + pixels(kFontSize) +
         "\" fill=\"#222\">\n<rect " + size + " fill=\"#fff\"/>\n" + body_ + "</svg>\n";
}

std::string point(double x, double y) { return pixels(x) + " " + pixels(y); }

double text_width(const std::string& words) {
  constexpr double kCharacter = 0.58;  // width over font size; readers' fonts differ
  const auto more = std::count_if(words.begin(), words.end(), is_continuation);
  return kCharacter * kFontSize * static_cast<double>(words.size() - static_cast<size_t>(more));
}

bool can_show(double value, bool is_log) {
  constexpr double kLargestShown = 1e250;  // leaves room for margins
  return std::abs(value) < kLargestShown && (!is_log || value > 1 / kLargestShown);
}

void Axis::fit(const std::vector<double>& values) {
  constexpr double kRoom = 0.04, kAlone = 0.5;  // margin: share of the range; around equal numbers
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (const double value : values) {
    least = std::min(least, is_log ? std::log10(value) : value);
    most = std::max(most, is_log ? std::log10(value) : value);
  }
  const double room =
      least < most ? kRoom * (most - least) : kAlone * std::max(is_log ? 0.0 : std::abs(most), 1.0);
  low = is_log ? std::pow(10.0, least - room) : least - room;
  high = is_log ? std::pow(10.0, most + room) : most + room;
}

double Axis::share(double value) const {
  const auto scaled = [this](double number) { return is_log ? std::log10(number) : number; };
  return (scaled(value) - scaled(low)) / (scaled(high) - scaled(low));
}

std::vector<Tick> ticks_of(const Axis& axis, double count) {
  if (!axis.is_log) return even_ticks(axis, count);
  const double ratio = axis.high / axis.low;
  if (ratio > 10) return power_ticks(axis, count);                     // else it may hold no power
  return even_ticks(axis, count * (1 - 1 / ratio) / std::log(ratio));  // dense at the high end
}

Panel::Panel(Box box, Axis x, Axis y) : box_(box), x_(std::move(x)), y_(std::move(y)) {}

double Panel::left_of(const Axis& y, double height) {
  return widest(rows_of(y, height)) + (y.label.empty() ? 12 : 34);
}

double Panel::below(const Axis& x) { return x.label.empty() ? 24 : 46; }

void Panel::draw(Svg& svg) const {
  const double right = box_.left + box_.width, bottom = box_.top + box_.height;
  const std::string middle = R"(text-anchor="middle")", end = R"(text-anchor="end")";
  std::string grid;
  for (const Tick& tick : columns_of(x_, box_.width)) {
    grid += "M" + point(x(tick.value), box_.top) + "V" + pixels(bottom);
    svg.text(x(tick.value), bottom + 18, tick.label, box_.width, middle);
  }
  for (const Tick& tick : rows_of(y_, box_.height)) {
    grid += "M" + point(box_.left, y(tick.value)) + "H" + pixels(right);
    svg.text(box_.left - 8, y(tick.value) + 4, tick.label, box_.width, end);
  }
  svg.path(grid, R"(stroke="#ddd")");
  svg.path("M" + point(box_.left, box_.top) + "V" + pixels(bottom) + "H" + pixels(right),
           R"(fill="none" stroke="#666")");
  svg.text(box_.left + box_.width / 2, bottom + 38, x_.label, box_.width, middle);
  const double side = box_.left - left_of(y_, box_.height) + 16;
  svg.text(0, 0, y_.label, box_.height,
           middle + " transform=\"translate(" + point(side, box_.top + box_.height / 2) +
               ") rotate(-90)\"");
}

double Panel::x(double value) const { return box_.left + x_.share(value) * box_.width; }

double Panel::y(double value) const { return box_.top + (1 - y_.share(value)) * box_.height; }

}  // namespace crais
