// Plain-text tables for stdout, and how wide the standard streams are.
#pragma once

#include <string>
#include <vector>

namespace crais {

/// Columns as wide as their widest cell, two spaces apart. A column of numbers (with or without
/// "+- error", "%" or ",") stands right, any other left.
class Table {
 public:
  /// The first `names` columns name a row; 0: the text columns on the left do.
  explicit Table(std::vector<std::string> headers, std::string title = "", size_t names = 0);

  /// Throws Error kInternal unless there is a cell for every header.
  void add_row(std::vector<std::string> cells);
  /// A line across, between two groups of rows.
  void add_rule();

  /// The whole table, each line ended by a newline and without spaces before it.
  ///
  /// Where it is wider than `width` columns (0: no limit), it comes in parts, one below the other:
  /// each begins with the columns that name a row, as far as they leave half of the width, and has
  /// as many of the others as fit, in their order. A column that would not fit even so is broken
  /// between words.
  std::string text(int width = 0) const;

  using Row = std::vector<std::string>;  // empty: a rule
  const std::string& title() const { return title_; }
  const Row& headers() const { return headers_; }
  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::string part(const std::vector<size_t>& columns, size_t width) const;
  std::vector<size_t> widths() const;
  std::vector<bool> numeric() const;

  std::string title_;
  Row headers_;
  std::vector<Row> rows_;
  size_t names_;
};

/// Columns of the terminal that stream `descriptor` writes to; 0 where it is none (a file, a pipe).
int terminal_width(int descriptor);

/// What stdout shows lines of at most: its terminal's columns, 0 (no limit) where it is none.
int stdout_width();

/// A paragraph broken between words into lines of at most `width` columns, each ended by a newline;
/// 0: 80 columns.
std::string wrapped(const std::string& text, int width);

}  // namespace crais
