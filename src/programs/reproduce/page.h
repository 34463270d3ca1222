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
  std::string text, csv;

  Cell(const std::string& words) : text(words), csv(words) {}
  Cell(const std::string& words, double value);
};

/// A column of an experiment: "header = text", or "header = sum:DECIMALS" of values and measures.
struct Column {
  std::string header, words;  // the text, or the sum
  std::string spread;         // "sum +- spread:DECIMALS"
  int decimals = -1;          // of a number
  bool at_length = false;     // "... at length" tells of another number of transitions than `steps`
  bool or_reason = false;     // "... or reason" tells why a result has failed

  /// Throws Error kData for anything else.
  explicit Column(const std::string& column);
  bool is_number() const { return decimals >= 0; }
  Cell cell(const nlohmann::json& values, const VariantResult& result,
            const Measures& measures) const;
};

/// Collects the findings of an experiment in a folder. A table goes at once to stdout and to
/// STEM.csv; `finish` writes tables.md, with paragraphs and tables in their order.
class Page {
 public:
  Page(std::filesystem::path folder, const std::string& title);

  void paragraph(const std::string& text);
  /// Adds a table if it has rows. One that is `folded`, of minor interest, is a line on stdout and
  /// on the page, and complete in STEM.csv.
  void table(const std::string& stem, const std::string& title,
             const std::vector<std::string>& headers, const std::vector<std::vector<Cell>>& rows,
             bool folded);
  void finish() const;

 private:
  std::filesystem::path folder_;
  std::string markdown_;
};

}  // namespace crais
