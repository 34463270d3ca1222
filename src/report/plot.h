// Pictures, drawn by gnuplot.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace crais {

struct Series {
  std::string name;
  std::vector<double> x, y;
  std::vector<double> error;  // of y, drawn as bars; may be empty

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

/// Writes STEM.svg and STEM.png. False if there is no gnuplot to draw them.
/// Points with an infinite or NaN coordinate, or not above 0 on a logarithmic axis, are left out.
/// Throws Error kIo if gnuplot fails.
bool write_plot(const std::filesystem::path& stem, const Plot& plot);

}  // namespace crais
