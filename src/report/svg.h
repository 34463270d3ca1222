// Pictures as SVG: shapes and texts, and panels with axes that turn numbers into pixels.
#pragma once

#include <string>
#include <vector>

namespace crais {

/// A picture on white, in pixels from its top left. The same calls make the same bytes.
class Svg {
 public:
  /// `shape` in the language of SVG's paths; `style`: attributes, as stroke="red".
  void path(const std::string& shape, const std::string& style);
  /// Words on one line, shortened to `room` pixels; markup in them is shown.
  void text(double x, double y, const std::string& words, double room, const std::string& style);
  /// The shape that `style` has given an id, again, so many pixels further.
  void again(const std::string& id, double right, double down);
  std::string content(double width, double height) const;

 private:
  std::string body_;
};

constexpr double kFontSize = 12;
constexpr const char* kTitleStyle = R"(font-size="14" font-weight="600")";

/// "12.5 40", a point of a path.
std::string point(double x, double y);
/// About how many pixels words take.
double text_width(const std::string& words);

/// True of numbers that an axis can show: finite, and above 0 where it is logarithmic.
bool can_show(double value, bool is_log);

/// An interval of numbers along a side of a panel.
struct Axis {
  std::string label;
  bool is_log = false;
  double low = 0.0, high = 1.0;
  bool is_whole = false;  // whole numbers have ticks, and no others

  /// Has room for these numbers, each of which can be shown, and a little beside the outermost.
  void fit(const std::vector<double>& values);
  /// 0 at the low end, 1 at the high one.
  double share(double value) const;
};

/// A round number of an axis.
struct Tick {
  double value = 0.0;
  std::string label;
};
/// About `count` of them, at most about twice as many.
std::vector<Tick> ticks_of(const Axis& axis, double count);

struct Box {
  double left = 0, top = 0, width = 0, height = 0;
};

/// A rectangle whose sides are axes. Labels stand outside of it, to the left and below.
class Panel {
 public:
  Panel(Box box, Axis x, Axis y);
  /// Pixels that labels need on the left of a panel, and below.
  static double left_of(const Axis& y, double height);
  static double below(const Axis& x);

  /// The grid, ticks and labels: what lies under the data.
  void draw(Svg& svg) const;
  double x(double value) const;
  double y(double value) const;
  std::string at(double x_value, double y_value) const { return point(x(x_value), y(y_value)); }

 private:
  Box box_;
  Axis x_, y_;
};

}  // namespace crais
