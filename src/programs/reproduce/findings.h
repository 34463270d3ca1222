// What experiments make of results: errors, choices, rows of tables, curves.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "report/page.h"
#include "report/plot.h"

namespace crais {

/// The mean over the first dimension, and its standard error.
struct Spread {
  double mean, std_error;
  explicit Spread(const at::Tensor& values);
};

/// The paired difference of two samples [S], and its t statistic.
struct Paired {
  Spread difference;
  double t;
  Paired(const at::Tensor& a, const at::Tensor& b)
      : difference(a - b), t(difference.mean / difference.std_error) {}
};

/// Estimates [N] against the truth.
struct TargetErrors {
  double bias, std_error;  // of the mean estimate
  double absolute, root_mean_square;
  TargetErrors(const at::Tensor& estimates, double truth);
};

/// What an experiment reports of several settings: chosen honestly, or by an oracle.
struct Choice {
  static constexpr size_t kNone = static_cast<size_t>(-1);
  size_t chosen = kNone, oracle = kNone;
};

/// The first `choosing` seeds choose what the others report.
/// @param values  of each setting: [S] estimates of log Z, or [S,N]; NaN for one that failed.
/// @param loss    of the seeds that report, [S'] or [S',N], against the truth, if it is known.
/// @return  `chosen` has the highest mean (honest, for every estimate is a lower bound on average),
///          `oracle` the least loss; kNone if all have failed.
Choice choose(const std::vector<at::Tensor>& values, int64_t choosing,
              const std::function<double(const at::Tensor&)>& loss = {});

/// A row of a table: what stands below each header. Rows of one table have the same headers.
using Row = std::vector<std::pair<std::string, Cell>>;

/// To `decimals` places; "-" for NaN, which is a number that is not there.
Cell number(double value, int decimals);

/// "991.90 +- 69.87"; "-" for NaN.
Cell with_spread(double value, double spread, int decimals);

/// The same, where a run with other than `steps` transitions says so: "-0.71 (M = 49)".
Cell at_length(double value, int decimals, double transitions, int64_t steps);

/// Adds a table of one row at least; `folded` as Page::folded_table.
void add_table(Page& page, const std::string& stem, const std::string& title,
               const std::vector<Row>& rows, bool folded = false);

/// A plot without a series, on linear axes.
Plot axes(const std::string& title, const std::string& x_label, const std::string& y_label);

/// The series of that name, added if there is none.
Series& series_named(Plot& plot, const std::string& name);

/// Values along a plan against the fraction of its transitions, in no more points than a picture
/// shows.
Series along_plan(const std::string& name, const std::vector<double>& values);

}  // namespace crais
