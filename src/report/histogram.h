// How numbers are spread.
#pragma once

#include <string>
#include <vector>

namespace crais {

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

}  // namespace crais
