// Curves and points against one cost or setting, histograms, and particles in the plane.
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

struct Histogram {
  std::string title, x_label, y_label;
  std::vector<double> values;
};

/// Equal bins and how many values fall in each.
struct Bins {
  double low = 0.0, width = 1.0;
  std::vector<double> counts;
};

/// Bins as wide as Freedman and Diaconis (1981) propose, 2 IQR N^(-1/3), between 5 and 60 of them;
/// values that are NaN or beyond 1e100 are left out. No bins if none is left.
Bins bins_of(const std::vector<double>& values);

/// The picture as SVG. Requires bins.
std::string svg_of(const Histogram& histogram);

/// A rectangle of the plane.
struct Window {
  double left = -1, right = 1, bottom = -1, top = 1;
};

/// Values of a density on a grid that spans a window, row by row from the bottom; its lines.
struct Contours {
  size_t columns = 0;          // of the grid; 0: no contours
  std::vector<double> values;  // rows * columns
  std::vector<double> levels;  // of the values
};

struct ScatterPanel {
  std::string title;
  std::vector<double> x, y;
};

/// Panels of one target: the same window, the same contours.
struct Scatter {
  std::string title;
  Window window;
  Contours contours;
  std::vector<ScatterPanel> panels;
  size_t columns = 3;  // of panels
};

/// The picture as SVG. Axes have one scale; points outside the window are left out.
std::string svg_of(const Scatter& scatter);

}  // namespace crais
