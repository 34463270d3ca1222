// Curves and points against one cost or setting.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace crais {

struct Series {
  std::string name;
  std::vector<double> x, y;
  std::vector<double> error;  // of y, drawn as bars; may be empty
  /// A line joins the points where x rises from each to the next: one method at growing cost.
  /// Points of settings that have nothing in common stay points: set this to false.
  bool joined = true;

  void add(double at_x, double at_y, double y_error) {
    x.push_back(at_x);
    y.push_back(at_y);
    error.push_back(y_error);
  }
};

struct Plot {
  std::string title, x_label, y_label;
  bool log_x = false, log_y = false;
  std::vector<Series> series;
};

/// More series than this are not told apart by colour.
constexpr size_t kMostSeries = 8;

/// The plot itself, or, of more than kMostSeries, several of them with as many series each as go
/// evenly, in their order.
std::vector<Plot> panels_of(const Plot& plot);

/// True if a line joins the points of the series.
bool is_curve(const Series& series);

/// True if some point can be drawn: finite, and above 0 on logarithmic axes.
bool has_points(const Plot& plot);

/// The picture as SVG. Panels stand below each other, with the same axes, and legends above them.
/// Points that cannot be drawn are left out. Throws Error kInternal unless has_points().
std::string svg_of(const Plot& plot);

}  // namespace crais
