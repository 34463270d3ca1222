// Evaluation of an experiment's results: errors, choices, rows of tables, plans.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "programs/reproduce/page.h"

namespace crais {

/// The mean over the first dimension and its standard error.
struct Spread {
  double mean, std_error;
  explicit Spread(const at::Tensor& values);
};

/// The paired difference of two samples [S] and its t statistic.
struct Paired {
  Spread difference;
  double t;
  Paired(const at::Tensor& a, const at::Tensor& b)
      : difference(a - b), t(difference.mean / difference.std_error) {}
};

/// Errors of estimates [N] relative to the truth.
struct TargetErrors {
  double bias, std_error;  // of the mean estimate
  double absolute, root_mean_square;
  TargetErrors(const at::Tensor& estimates, double truth);
};

/// The setting that an experiment reports: chosen honestly, or by an oracle.
struct Choice {
  static constexpr size_t kNone = static_cast<size_t>(-1);
  size_t chosen = kNone, oracle = kNone;
};

/// Chooses between settings: the first `choosing` seeds choose, and the other seeds report.
/// @param values  for each setting, [S] estimates of log Z, or [S,N]; NaN for a failed setting.
/// @param loss    the loss of the reporting seeds, [S'] or [S',N], against the truth if it is
/// known.
/// @return  `chosen` has the highest mean (honest, because every estimate is a lower bound on
/// average), `oracle` the least loss; kNone if all settings have failed.
Choice choose(const std::vector<at::Tensor>& values, int64_t choosing,
              const std::function<double(const at::Tensor&)>& loss = {});

/// A row of a table: a cell for each header. All rows of a table have equal headers.
using Row = std::vector<std::pair<std::string, Cell>>;

/// A number with `decimals` decimals; "-" for NaN, a missing number.
Cell number(double value, int decimals);

/// "991.90 +- 69.87"; "-" for NaN.
Cell with_spread(double value, double spread, int decimals);

/// A value with its spread. A run with other than `steps` transitions says so: "-0.71 (M = 49)".
Cell at_length(double value, int decimals, double transitions, int64_t steps);

/// Adds a table with at least one row; `folded` as in Page::folded_table.
void add_table(Page& page, const std::string& stem, const std::string& title,
               const std::vector<Row>& rows, bool folded = false);

/// `row` with the values along a plan, at each fiftieth of its transitions.
Row along_plan(Row row, const std::vector<double>& values);

}  // namespace crais
