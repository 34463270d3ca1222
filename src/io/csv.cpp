#include "io/csv.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "util/error.h"
#include "util/files.h"
#include "util/format.h"

namespace crais {
namespace {

std::string rfc_quoted(const std::string& text) {
  const bool plain =
      text.find_first_of(",\"\r\n") == std::string::npos &&
      (text.empty() || (text.front() != '#' && text.front() != ' ' && text.back() != ' '));
  if (plain) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

/// Reads the whole text, without surrounding spaces, as a number. nan and inf count as numbers.
bool read_number(const std::string& text, double& value) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return false;
  const char* const end = text.data() + text.find_last_not_of(' ') + 1;
  const auto [stop, error] = std::from_chars(text.data() + first, end, value);
  return error == std::errc() && stop == end;
}

[[noreturn]] void fail(const std::string& source, size_t line, const std::string& problem) {
  throw data_error(source, ": line ", line, ": ", problem);
}

/// Cuts a text into rows of cells, and counts lines.
class Scanner {
 public:
  Scanner(const std::string& text, const std::string& source) : text_(text), source_(source) {}

  bool at_end() const { return place_ >= text_.size(); }
  size_t line() const { return line_; }

  /// Skips one line if it is empty or a comment.
  bool skip_line() {
    const size_t newline = std::min(text_.find('\n', place_), text_.size());
    const bool blank = text_.find_first_not_of(" \t\r", place_) >= newline || text_[place_] == '#';
    if (!blank) return false;
    place_ = newline + 1;
    ++line_;
    return true;
  }

  std::vector<std::string> next_row() {
    std::vector<std::string> cells;
    do {
      cells.push_back(peek() == '"' ? quoted_cell() : bare_cell());
    } while (take(','));
    take('\r');
    if (!at_end() && !take('\n')) fail(source_, line_, "text follows a closing quote");
    ++line_;
    return cells;
  }

 private:
  char peek() const { return at_end() ? '\0' : text_[place_]; }

  bool take(char c) {
    if (at_end() || text_[place_] != c) return false;
    ++place_;
    return true;
  }

  std::string bare_cell() {
    const size_t end = std::min(text_.find_first_of(",\"\r\n", place_), text_.size());
    if (end < text_.size() && text_[end] == '"')
      fail(source_, line_, "a quote stands within a value; quote the whole value");
    const size_t begin = std::exchange(place_, end);
    return text_.substr(begin, end - begin);
  }

  std::string quoted_cell() {
    const size_t first_line = line_;
    ++place_;
    std::string cell;
    while (!at_end()) {
      const char c = text_[place_++];
      if (c == '"' && !take('"')) return cell;
      if (c == '\n') ++line_;
      cell += c;
    }
    fail(source_, first_line, "a quote is never closed");
  }

  const std::string& text_;
  const std::string& source_;
  size_t place_ = 0;
  size_t line_ = 1;
};

/// The text in plain form: without a byte order mark at the front, and with newlines in place of
/// line ends that are lone carriage returns. Other programs save such texts.
std::string plain_text(std::string text, const std::string& source) {
  if (text.find('\0') != std::string::npos)
    throw data_error(
        source, ": holds NUL characters, which no text has; if it is UTF-16, save it as UTF-8");
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.compare(0, kMark.size(), kMark) == 0) text.erase(0, kMark.size());
  if (text.find('\n') == std::string::npos) std::replace(text.begin(), text.end(), '\r', '\n');
  return text;
}

}  // namespace

CsvCell::CsvCell(double number) : text_(shortest(number)) {}
CsvCell::CsvCell(float number) : text_(shortest(number)) {}

CsvWriter::CsvWriter(const std::vector<std::string>& columns) : columns_(columns.size()) {
  add_row({columns.begin(), columns.end()});
}

void CsvWriter::add_row(const std::vector<CsvCell>& cells) {
  if (cells.size() != columns_)
    throw internal_error("a CSV row has ", cells.size(), " cells for ", columns_, " columns");
  for (size_t c = 0; c < cells.size(); ++c) {
    if (c > 0) text_ += ',';
    text_ += rfc_quoted(cells[c].text());
  }
  text_ += '\n';
}

CsvTable parse_csv(const std::string& bytes, const std::string& source, CsvNames names) {
  const std::string text = plain_text(bytes, source);
  CsvTable table;
  table.source_ = source;
  Scanner scanner(text, source);
  while (!scanner.at_end()) {
    if (scanner.skip_line()) continue;
    const size_t line = scanner.line();
    table.rows_.push_back({line, scanner.next_row()});
    const size_t expected = table.rows_.front().cells.size(),
                 found = table.rows_.back().cells.size();
    if (found != expected)
      fail(source, line,
           std::to_string(found) + " values where the first line has " + std::to_string(expected));
  }
  if (table.rows_.empty()) throw data_error(source, ": holds no values");
  if (names == CsvNames::kNone) return table;
  const auto& first = table.rows_.front().cells;
  double ignored = 0.0;
  if (std::all_of(first.begin(), first.end(),
                  [&](const auto& c) { return read_number(c, ignored); }))
    return table;
  table.columns_ = first;
  const size_t header_line = table.rows_.front().line;
  table.rows_.erase(table.rows_.begin());
  for (const auto& name : table.columns_)
    if (std::count(table.columns_.begin(), table.columns_.end(), name) > 1)
      fail(source, header_line, "two columns are named '" + name + "'");
  return table;
}

CsvTable read_csv(const std::string& path, CsvNames names) {
  return parse_csv(read_file(path), path, names);
}

size_t CsvTable::index_of(const std::string& column) const {
  if (columns_.empty() && rows_.front().cells.size() == 1) return 0;
  const auto position = std::find(columns_.begin(), columns_.end(), column);
  if (position != columns_.end()) return static_cast<size_t>(position - columns_.begin());
  std::string columns_text = columns_.empty() ? "; its columns have no names" : "; there are ";
  for (const auto& name : columns_) columns_text += (&name == &columns_.front() ? "" : ", ") + name;
  throw data_error(source_, ": has no column '", column, "'", columns_text);
}

std::vector<std::string> CsvTable::texts(size_t column) const {
  std::vector<std::string> values;
  for (const Row& row : rows_) values.push_back(row.cells[column]);
  return values;
}

std::vector<double> CsvTable::parsed(size_t index, const std::string& name) const {
  std::vector<double> values(rows_.size());
  for (size_t r = 0; r < rows_.size(); ++r)
    if (!read_number(rows_[r].cells[index], values[r]))
      fail(source_, rows_[r].line, name + ": '" + rows_[r].cells[index] + "' is not a number");
  return values;
}

std::vector<double> CsvTable::numbers(size_t column) const {
  return parsed(column, "column " + std::to_string(column + 1));
}

std::vector<double> CsvTable::numbers(const std::string& column) const {
  return parsed(index_of(column), column);
}

}  // namespace crais
