// Plain-text tables for stdout, and the widths of the standard streams.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace crais {

/// A table with columns as wide as their widest cell, two spaces apart. Columns of numbers (with or
/// without "+- error", "%" or ",") are right-aligned, other columns left-aligned.
class Table {
 public:
  using Row = std::vector<std::string>;
  using NamedCells = std::vector<std::pair<std::string, std::string>>;  // headers and cells

  /// The first `names` columns name a row. 0 means the text columns on the left.
  explicit Table(std::string title = "", size_t names = 0)
      : title_(std::move(title)), names_(names) {}

  /// Throws Error kInternal if the headers are not those of the first row.
  void add_row(const NamedCells& cells);

  /// The whole table. Each line ends with a newline and has no spaces before it.
  ///
  /// A table wider than `width` columns (0: no limit) comes in parts, one below the other. Each
  /// part begins with the columns that name a row, as far as they take at most half of the width,
  /// and continues with as many other columns as fit, in their order. A column that does not fit
  /// even then is broken between words.
  std::string text(int width = 0) const;

  const std::string& title() const { return title_; }
  const Row& headers() const { return headers_; }
  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::string title_;
  size_t names_;
  Row headers_;
  std::vector<Row> rows_;
};

/// The columns of the terminal that stream `descriptor` writes to; 0 if it is not a terminal.
int terminal_width(int descriptor);

/// The longest line that stdout shows: the columns of its terminal; 0 (no limit) if it is not a
/// terminal.
int stdout_width();

/// A paragraph broken between words into lines of at most `width` columns (0: 80), each ended by a
/// newline.
std::string wrapped(const std::string& text, int width);

}  // namespace crais
