// The output of an experiment: tables on stdout and as CSV, and one Markdown page of all of them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "programs/reproduce/cells.h"
#include "programs/reproduce/words.h"

namespace crais {

/// An entry of a table, in one form for people and one with all digits for programs.
struct Cell {
  std::string header, text, csv;
  bool is_number = false;
};

/// The cell of a column of an experiment: "header = text", or "header = sum:DECIMALS" of values and
/// measures. A sum may have a spread ("a +- b:DECIMALS"). After it, "at length" tells of another
/// number of transitions than `steps`, and "or reason" why the result has failed. Throws Error
/// kData for another column.
Cell cell_of(const std::string& column, const nlohmann::json& values, const VariantResult& result,
             const Measures& measures);

/// Collects the findings of an experiment in a folder. A table goes at once to stdout and to
/// STEM.csv; `finish` writes tables.md, with paragraphs and tables in their order.
class Page {
 public:
  Page(std::filesystem::path folder, const std::string& title);

  void paragraph(const std::string& text);
  /// Adds a table if it has rows. One that is `folded`, of minor interest, is a line on stdout and
  /// on the page, and complete in STEM.csv.
  void table(const std::string& stem, const std::string& title,
             const std::vector<std::vector<Cell>>& rows, bool folded);
  void finish() const;

 private:
  std::filesystem::path folder_;
  std::string markdown_;
};

}  // namespace crais
