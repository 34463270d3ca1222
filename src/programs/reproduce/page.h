// The output of an experiment: tables on stdout and as CSV, and one Markdown page of all of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "io/csv.h"

namespace crais {

/// An entry of a table, in one form for people and one for programs.
struct Cell {
  std::string text;
  CsvCell value;

  Cell(std::string words) : text(std::move(words)), value(text) {}
  Cell(const char* words) : Cell(std::string(words)) {}
  /// A number with `decimals` places in text, and with all digits in files.
  static Cell number(double value, int decimals);
  /// Only text: "991.90 +- 69.87".
  static Cell with_spread(double value, double spread, int decimals);
};

/// A row of a table: a cell for each header. All rows of a table have equal headers.
using Row = std::vector<std::pair<std::string, Cell>>;

/// Collects the findings of an experiment in a folder. A table goes at once to stdout and to
/// STEM.csv; `finish` writes tables.md, with paragraphs and tables in their order.
class Page {
 public:
  Page(std::filesystem::path folder, const std::string& title);

  void paragraph(const std::string& text);
  /// Adds a table with at least one row. One that is `folded`, of minor interest, is a line on
  /// stdout and on the page, and complete in STEM.csv.
  void table(const std::string& stem, const std::string& title, const std::vector<Row>& rows,
             bool folded = false);
  void finish() const;

 private:
  std::filesystem::path folder_;
  std::string markdown_;
};

}  // namespace crais
