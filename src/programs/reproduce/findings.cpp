#include "programs/reproduce/findings.h"

#include <algorithm>
#include <cmath>

#include "estimates/estimate.h"
#include "programs/reproduce/matching.h"
#include "util/format.h"

namespace crais {

Spread::Spread(const at::Tensor& values)
    : mean(values.mean().item<double>()), std_error(std_error_of_mean(values)) {}

TargetErrors::TargetErrors(const at::Tensor& estimates, double truth) {
  const at::Tensor errors = estimates.flatten() - truth;
  const Spread spread(errors);
  bias = spread.mean;
  std_error = spread.std_error;
  absolute = errors.abs().mean().item<double>();
  root_mean_square = errors.square().mean().sqrt().item<double>();
}

Choice choose(const std::vector<at::Tensor>& values, int64_t choosing,
              const std::function<double(const at::Tensor&)>& loss) {
  Choice choice;
  double highest = -INFINITY, least = INFINITY;
  for (size_t i = 0; i < values.size(); ++i) {
    const double mean = values[i].slice(0, 0, choosing).mean().item<double>();
    if (mean > highest) {
      highest = mean;
      choice.chosen = i;
    }
    const double lost = loss ? loss(values[i].slice(0, choosing)) : NAN;
    if (lost < least) {
      least = lost;
      choice.oracle = i;
    }
  }
  return choice;
}

Cell number(double value, int decimals) {
  return std::isnan(value) ? Cell("-") : Cell::number(value, decimals);
}

Cell with_spread(double value, double spread, int decimals) {
  return std::isnan(value) ? Cell("-") : Cell::with_spread(value, spread, decimals);
}

Cell at_length(double value, int decimals, double transitions, int64_t steps) {
  if (std::isnan(value) || is_fair(transitions, steps)) return number(value, decimals);
  return fixed(value, decimals) + " (M = " + fixed(transitions, 0) + ")";
}

void add_table(Page& page, const std::string& stem, const std::string& title,
               const std::vector<Row>& rows, bool folded) {
  std::vector<std::string> headers;
  for (const auto& [header, cell] : rows.at(0)) headers.push_back(header);
  std::vector<std::vector<Cell>> cells(rows.size());
  for (size_t i = 0; i < rows.size(); ++i)
    for (const auto& [header, cell] : rows[i]) cells[i].push_back(cell);
  if (folded)
    page.folded_table(stem, title, headers, cells);
  else
    page.table(stem, title, headers, cells);
}

Plot axes(const std::string& title, const std::string& x_label, const std::string& y_label) {
  Plot plot;
  plot.title = title;
  plot.x_label = x_label;
  plot.y_label = y_label;
  return plot;
}

Series& series_named(Plot& plot, const std::string& name) {
  for (Series& series : plot.series)
    if (series.name == name) return series;
  plot.series.emplace_back().name = name;
  return plot.series.back();
}

Series along_plan(const std::string& name, const std::vector<double>& values) {
  constexpr size_t kPoints = 400;
  Series series;
  series.name = name;
  const size_t stride = values.size() / kPoints + 1;
  const size_t last = values.size() - 1;
  for (size_t i = 0; i < last + stride; i += stride) {
    const size_t place = std::min(i, last);
    series.x.push_back(static_cast<double>(place) / static_cast<double>(last));
    series.y.push_back(values[place]);
  }
  return series;
}

}  // namespace crais
