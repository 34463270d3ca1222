// Comma-separated values: written exactly, read strictly.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

namespace crais {

/// One value as text. A floating-point number is written with the fewest digits that read back as
/// the same number, or as nan, inf, -inf; a bool as 0 or 1.
class CsvCell {
 public:
  CsvCell(std::string text) : text_(std::move(text)) {}
  CsvCell(const char* text) : text_(text) {}
  CsvCell(std::integral auto number) : text_(std::to_string(number)) {}
  CsvCell(double number);
  CsvCell(float number);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Rows under a header line, as one string for write_file_atomic.
class CsvWriter {
 public:
  explicit CsvWriter(const std::vector<std::string>& columns);

  /// Throws Error kInternal unless there is a cell for every column.
  void add_row(const std::vector<CsvCell>& cells);
  const std::string& text() const { return text_; }

 private:
  size_t columns_;
  std::string text_;
};

/// Whether a first line that is not of numbers alone names the columns, or is data like any other.
enum class CsvNames { kDetect, kNone };

/// A file as read. A first line of numbers alone is data, and the columns have no names then.
class CsvTable {
 public:
  size_t rows() const { return rows_.size(); }
  size_t num_columns() const {
    return rows_.empty() ? columns_.size() : rows_.front().cells.size();
  }
  size_t line_of(size_t row) const { return rows_[row].line; }

  /// The column of that name; where names are absent, the only column.
  /// Throws Error kData, naming the source and the line, if there is no such column or a value is
  /// not a number.
  std::vector<double> numbers(const std::string& column) const;

  /// The same by position; messages count columns from 1.
  std::vector<double> numbers(size_t column) const;
  std::vector<std::string> texts(size_t column) const;

 private:
  friend CsvTable parse_csv(const std::string& text, const std::string& source, CsvNames names);
  struct Row {
    size_t line;
    std::vector<std::string> cells;
  };
  size_t index_of(const std::string& column) const;
  std::vector<double> parsed(size_t index, const std::string& name) const;

  std::string source_;
  std::vector<std::string> columns_;
  std::vector<Row> rows_;
};

/// Parses CSV (RFC 4180; either line ending). Empty lines and lines that begin with # are skipped.
/// Throws Error kData naming the source and the line: a row of another length, an open quote, a
/// quote within a bare value, a column named twice, no rows at all.
CsvTable parse_csv(const std::string& text, const std::string& source,
                   CsvNames names = CsvNames::kDetect);

/// Reads a file. Throws as read_file (util/files.h) and parse_csv do.
CsvTable read_csv(const std::string& path, CsvNames names = CsvNames::kDetect);

}  // namespace crais
