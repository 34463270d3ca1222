// Pictures as SVG: shapes and texts, and panels whose axes turn numbers into pixels.
#pragma once

#include <string>
#include <vector>

namespace crais {

/// A picture on white, in pixels from its top left. Equal calls make equal bytes.
class Svg {
 public:
  /// Draws `shape`, a path in SVG's language. `style` holds attributes, such as stroke="red".
  void path(const std::string& shape, const std::string& style);
  /// Writes words on one line, shortened to `room` pixels. Markup in them is shown.
  void text(double x, double y, const std::string& words, double room, const std::string& style);
  /// Draws the shape with the id that `style` gave it again, moved by so many pixels.
  void again(const std::string& id, double right, double down);
  std::string content(double width, double height) const;

 private:
  std::string body_;
};

constexpr double kFontSize = 12;
constexpr const char* kTitleStyle = R"(font-size="14" font-weight="600")";

/// A point of a path: "12.5 40".
std::string point(double x, double y);
/// The approximate width of words in pixels.
double text_width(const std::string& words);

/// True if an axis can show the number: finite, and above 0 on a logarithmic axis.
bool can_show(double value, bool is_log);

/// An interval of numbers along a side of a panel.
struct Axis {
  std::string label;
  bool is_log = false;
  double low = 0.0, high = 1.0;
  bool is_whole = false;  // ticks only at whole numbers

  /// Extends the axis to these numbers, each of which it can show, and adds a margin.
  void fit(const std::vector<double>& values);
  /// The position of a value: 0 at the low end, 1 at the high end.
  double share(double value) const;
};

/// A round number on an axis.
struct Tick {
  double value = 0.0;
  std::string label;
};
/// About `count` ticks, at most about twice as many.
std::vector<Tick> ticks_of(const Axis& axis, double count);

struct Box {
  double left = 0, top = 0, width = 0, height = 0;
};

/// A rectangle with axes as sides. Labels stand outside, to the left and below.
class Panel {
 public:
  Panel(Box box, Axis x, Axis y);
  /// Pixels for the labels to the left of a panel, and below it.
  static double left_of(const Axis& y, double height);
  static double below(const Axis& x);

  /// Draws the grid, ticks and labels: the layer under the data.
  void draw(Svg& svg) const;
  double x(double value) const;
  double y(double value) const;
  std::string at(double x_value, double y_value) const { return point(x(x_value), y(y_value)); }

 private:
  Box box_;
  Axis x_, y_;
};

}  // namespace crais
