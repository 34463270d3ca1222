// Plain-text tables for stdout.
#pragma once

#include <string>
#include <vector>

namespace crais {

/// Columns as wide as their widest cell, two spaces apart. A column of numbers (with or without
/// "+- error", "%" or ",") stands right, any other left.
class Table {
 public:
  explicit Table(std::vector<std::string> headers, std::string title = "");

  /// Throws Error kInternal unless there is a cell for every header.
  void add_row(std::vector<std::string> cells);
  /// A line across, between two groups of rows.
  void add_rule();

  /// The whole table, each line ended by a newline and without spaces before it.
  std::string text() const;

 private:
  using Row = std::vector<std::string>;  // empty: a rule

  std::string title_;
  Row headers_;
  std::vector<Row> rows_;
};

}  // namespace crais
