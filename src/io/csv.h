// Comma-separated values (CSV): exact output, strict input.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

namespace crais {

/// One value as text. A floating-point number has the fewest digits that read back as the same
/// number, or is nan, inf or -inf; a bool is 0 or 1.
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

  /// Throws Error kInternal if the row does not have one cell for every column.
  void add_row(const std::vector<CsvCell>& cells);
  const std::string& text() const { return text_; }

 private:
  size_t columns_;
  std::string text_;
};

/// kDetect: a first line that contains a text names the columns. kNone: the first line is data.
enum class CsvNames { kDetect, kNone };

/// The content of a file. If the first line holds only numbers, it is data and the columns have no
/// names.
class CsvTable {
 public:
  size_t rows() const { return rows_.size(); }
  size_t num_columns() const {
    return rows_.empty() ? columns_.size() : rows_.front().cells.size();
  }
  size_t line_of(size_t row) const { return rows_[row].line; }

  /// The column of that name; without names, the only column. Throws Error kData that names the
  /// source and the line if there is no such column or a value is not a number.
  std::vector<double> numbers(const std::string& column) const;

  /// The column at that position; messages count columns from 1.
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

/// Parses CSV (RFC 4180; either line ending). Skips empty lines and lines that begin with #. Throws
/// Error kData that names the source and the line for a row of another length, an open quote, a
/// quote within a bare value, a repeated column name, or a text without rows.
CsvTable parse_csv(const std::string& text, const std::string& source,
                   CsvNames names = CsvNames::kDetect);

/// Reads a file. Throws the errors of read_file (util/files.h) and parse_csv.
CsvTable read_csv(const std::string& path, CsvNames names = CsvNames::kDetect);

}  // namespace crais
