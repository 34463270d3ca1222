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

Row along_plan(Row row, const std::vector<double>& values) {
  constexpr int kParts = 50;
  for (int part = 0; part <= kParts; ++part) {
    const double fraction = static_cast<double>(part) / kParts;
    const double place = fraction * static_cast<double>(values.size() - 1);
    const auto before = static_cast<size_t>(place);
    const size_t after = std::min(before + 1, values.size() - 1);
    const double value = std::lerp(values[before], values[after], place - std::floor(place));
    row.emplace_back(fixed(fraction, 2), significant(value, 6));
  }
  return row;
}

}  // namespace crais
