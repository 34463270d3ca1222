// Plots: curves and points against cost or a setting, histograms, and particles in the plane.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace crais {

struct Series {
  std::string name;
  std::vector<double> x, y;
  std::vector<double> error;  // of y, drawn as error bars; may be empty
  /// If true, a line joins neighbouring points with rising x, as for one method at growing cost.
  /// Set this to false for points of unrelated settings.
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

/// Colours cannot distinguish more series.
constexpr size_t kMostSeries = 8;

/// The plot, or several plots if it has more than kMostSeries series. The series keep their order
/// and are divided evenly.
std::vector<Plot> panels_of(const Plot& plot);

/// True if a line joins the points of the series.
bool is_curve(const Series& series);

/// True if at least one point can be drawn: finite, and above 0 on logarithmic axes.
bool has_points(const Plot& plot);

/// The plot as SVG. Panels stand below each other with equal axes, and legends above them. Points
/// that cannot be drawn are left out. Throws Error kInternal unless has_points().
std::string svg_of(const Plot& plot);

struct Histogram {
  std::string title, x_label, y_label;
  std::vector<double> values;
};

/// Equal bins and the number of values in each.
struct Bins {
  double low = 0.0, width = 1.0;
  std::vector<double> counts;
};

/// Bins of the width 2 IQR N^(-1/3) of Freedman and Diaconis (1981), between 5 and 60 of them.
/// Leaves out values that are NaN or beyond 1e100. Returns no bins if no value is left.
Bins bins_of(const std::vector<double>& values);

/// The histogram as SVG. Requires bins.
std::string svg_of(const Histogram& histogram);

/// A rectangle of the plane.
struct Window {
  double left = -1, right = 1, bottom = -1, top = 1;
};

/// The values of a density on a grid that covers a window, row by row from the bottom, and the
/// levels of its contours.
struct Contours {
  size_t columns = 0;          // of the grid; 0: no contours
  std::vector<double> values;  // rows * columns
  std::vector<double> levels;  // of the values
};

struct ScatterPanel {
  std::string title;
  std::vector<double> x, y;
};

/// Panels of one target with equal windows and contours.
struct Scatter {
  std::string title;
  Window window;
  Contours contours;
  std::vector<ScatterPanel> panels;
  size_t columns = 3;  // panels in a row
};

/// The panels as SVG. Both axes have the same scale. Points outside the window are left out.
std::string svg_of(const Scatter& scatter);

}  // namespace crais
