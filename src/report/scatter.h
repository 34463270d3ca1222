// Particles in the plane over the contours of their density, panel beside panel.
#pragma once

#include <string>
#include <vector>

namespace crais {

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
