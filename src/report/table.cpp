#include "report/table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <utility>

#include "util/error.h"

namespace crais {
namespace {

/// True for "12", "-87.31 +- 0.21", "+3", ".5", "1,024", "nan", and for "", "-" and "?", which
/// stand for a missing number.
bool reads_as_number(const std::string& cell) {
  if (cell.empty() || cell == "-" || cell == "?") return true;
  const size_t first = cell[0] == '-' || cell[0] == '+' ? 1 : 0;
  if (cell.compare(first, 3, "nan") == 0 || cell.compare(first, 3, "inf") == 0) return true;
  const size_t digit = first + (first < cell.size() && cell[first] == '.' ? 1 : 0);
  return digit < cell.size() && std::isdigit(static_cast<unsigned char>(cell[digit])) != 0;
}

/// The number of characters, not bytes: names may hold characters of several bytes.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

/// How a column is set.
struct Column {
  size_t index, width;
  bool is_right;  // of numbers
};

/// Some columns of a table, of which the last is broken between words where it would pass `most`.
std::string part_of(const Table& table, std::vector<Column> columns, size_t gap, size_t most) {
  constexpr size_t kLeast = 12;  // width of a broken column
  size_t whole = 0;
  for (const Column& c : columns) whole += c.width + (&c == &columns.back() ? 0 : gap);
  Column& last = columns.back();
  const size_t before = whole - last.width;
  if (whole > most) last.width = std::max(kLeast, most > before ? most - before : 0);
  const auto lines = [&](Table::Row row) {
    std::string cell = std::move(row[last.index]), text;
    if (width_of(cell) > last.width) cell = wrapped(cell, static_cast<int>(last.width));
    std::istringstream pieces(cell);
    do {
      row[last.index].clear();
      std::getline(pieces, row[last.index]);
      std::string line;
      for (const Column& c : columns) {
        const size_t used = width_of(row[c.index]);
        const std::string space(used < c.width ? c.width - used : 0, ' ');
        if (c.index > 0) line.append(gap, ' ');
        line += c.is_right ? space + row[c.index] : row[c.index] + space;
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
      row.assign(row.size(), "");
    } while (pieces.peek() != EOF);
    return text;
  };
  std::string text = lines(table.headers()) + std::string(before + last.width, '-') + "\n";
  for (const Table::Row& row : table.rows()) text += lines(row);
  return text;
}

}  // namespace

void Table::add_row(const NamedCells& cells) {
  Row headers, row;
  for (const auto& [header, cell] : cells) {
    headers.push_back(header);
    row.push_back(cell);
  }
  if (rows_.empty()) headers_ = headers;
  if (headers_ != headers)
    throw internal_error("a row of a table has other columns than the first");
  rows_.push_back(std::move(row));
}

std::string Table::text(int width) const {
  std::vector<Column> columns;
  for (size_t i = 0; i < headers_.size(); ++i) {
    Column& c = columns.emplace_back(Column{i, width_of(headers_[i]), true});
    for (const Row& row : rows_) {
      c.width = std::max(c.width, width_of(row[i]));
      c.is_right = c.is_right && reads_as_number(row[i]);
    }
  }
  const size_t most = width > 0 ? static_cast<size_t>(width) : std::string::npos;
  size_t whole = columns.size() - 1;  // with narrow gaps
  for (const Column& c : columns) whole += c.width;
  const size_t gap = whole <= most && whole + columns.size() - 1 > most ? 1 : 2;
  std::vector<Column> names;
  size_t named = 0;
  for (const Column& c : columns) {
    const bool is_name = names_ > 0 ? c.index < names_ : !c.is_right;
    if (!is_name || c.index + 1 == columns.size()) break;
    if (c.index > 0 && named + c.width + gap > most / 2) break;
    names.push_back(c);
    named += c.width + gap;
  }
  std::string text = title_.empty() ? "" : wrapped(title_, width > 0 ? width : 1 << 20);
  for (size_t i = names.size(); i < columns.size();) {
    if (i > names.size()) text += "\n";
    std::vector<Column> part = names;
    size_t used = named;
    do {
      part.push_back(columns[i]);
      used += columns[i++].width + gap;
    } while (i < columns.size() && used + columns[i].width <= most);
    text += part_of(*this, part, gap, most);
  }
  return text;
}

int terminal_width(int descriptor) {
  winsize size{};
  if (::isatty(descriptor) != 1) return 0;
  const bool known = ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

int stdout_width() { return terminal_width(STDOUT_FILENO); }

std::string wrapped(const std::string& text, int width) {
  const auto most = static_cast<size_t>(width > 0 ? width : 80);
  std::istringstream words(text);
  std::string lines, word;
  size_t used = most;  // of the last line
  while (words >> word) {
    const bool fits = used + 1 + word.size() <= most;
    lines += (lines.empty() ? "" : fits ? " " : "\n") + word;
    used = (fits ? used + 1 : 0) + word.size();
  }
  return lines.empty() ? lines : lines + "\n";
}

}  // namespace crais
