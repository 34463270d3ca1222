// The output of an experiment: tables on stdout and as CSV, and one Markdown page of all of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "io/csv.h"

namespace crais {

/// An entry of a table, in one form for people and one for programs.
struct Cell {
  std::string text;
  CsvCell value;

  Cell(std::string words) : text(std::move(words)), value(text) {}
  Cell(const char* words) : Cell(std::string(words)) {}
  Cell(int64_t number);
  /// A number with `decimals` places in text, and with all digits in files.
  static Cell number(double value, int decimals);
  /// Only text: "991.90 +- 69.87".
  static Cell with_spread(double value, double spread, int decimals);
};

/// Collects the findings of an experiment in a folder. A table goes at once to stdout and to
/// STEM.csv; `finish` writes tables.md, with paragraphs and tables in their order.
class Page {
 public:
  Page(std::filesystem::path folder, const std::string& title);

  void paragraph(const std::string& text);
  void table(const std::string& stem, const std::string& title,
             const std::vector<std::string>& headers, const std::vector<std::vector<Cell>>& rows);
  /// A table of minor interest, such as all settings but the best: one line on stdout and on the
  /// page, complete in STEM.csv.
  void folded_table(const std::string& stem, const std::string& title,
                    const std::vector<std::string>& headers,
                    const std::vector<std::vector<Cell>>& rows);
  void finish() const;

 private:
  void write_csv(const std::string& stem, const std::vector<std::string>& headers,
                 const std::vector<std::vector<Cell>>& rows) const;

  std::filesystem::path folder_;
  std::string markdown_;
};

}  // namespace crais
