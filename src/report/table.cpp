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

}  // namespace

Table::Table(std::vector<std::string> headers, std::string title, size_t names)
    : title_(std::move(title)), headers_(std::move(headers)), names_(names) {}

void Table::add_row(std::vector<std::string> cells) {
  if (cells.size() != headers_.size())
    throw Error(ErrorKind::kInternal, "a table row has " + std::to_string(cells.size()) +
                                          " cells for " + std::to_string(headers_.size()) +
                                          " columns");
  rows_.push_back(std::move(cells));
}

std::vector<size_t> Table::widths() const {
  std::vector<size_t> widths;
  for (size_t c = 0; c < headers_.size(); ++c) {
    widths.push_back(width_of(headers_[c]));
    for (const Row& row : rows_) widths[c] = std::max(widths[c], width_of(row[c]));
  }
  return widths;
}

std::vector<bool> Table::numeric() const {
  std::vector<bool> numeric(headers_.size(), !rows_.empty());
  for (size_t c = 0; c < headers_.size(); ++c)
    for (const Row& row : rows_) numeric[c] = numeric[c] && reads_as_number(row[c]);
  return numeric;
}

std::string Table::part(const std::vector<size_t>& columns, size_t width) const {
  std::vector<size_t> widths = this->widths();
  const std::vector<bool> right = numeric();
  size_t before_last = 0;
  for (size_t i = 0; i + 1 < columns.size(); ++i) before_last += widths[columns[i]] + 2;
  constexpr size_t kLeast = 12;  // width of a broken column
  size_t& last = widths[columns.back()];
  if (width > 0 && before_last + last > width)
    last = std::max(kLeast, width > before_last ? width - before_last : 0);

  const auto line = [&](const Row& row, const std::string& end) {
    std::string text;
    for (size_t i = 0; i < columns.size(); ++i) {
      const size_t c = columns[i];
      const std::string& cell = i + 1 == columns.size() ? end : row[c];
      const size_t used = width_of(cell);
      const std::string space(used < widths[c] ? widths[c] - used : 0, ' ');
      text += (i == 0 ? "" : "  ") + (right[c] ? space + cell : cell + space);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  };
  const auto lines = [&](const Row& row) {
    const std::string& cell = row[columns.back()];
    if (width_of(cell) <= last) return line(row, cell);
    std::istringstream broken(wrapped(cell, static_cast<int>(last)));
    std::string text, piece;
    Row rest = row;
    while (std::getline(broken, piece)) {
      text += line(rest, piece);
      rest.assign(row.size(), "");
    }
    return text;
  };
  std::string text = lines(headers_) + std::string(before_last + last, '-') + "\n";
  for (const Row& row : rows_) text += lines(row);
  return text;
}

std::string Table::text(int width) const {
  const std::vector<size_t> widths = this->widths();
  const std::vector<bool> right = numeric();
  const auto most = width > 0 ? static_cast<size_t>(width) : std::string::npos;
  std::vector<size_t> names;
  size_t named = 0;
  for (size_t c = 0; c < headers_.size() && (names_ > 0 ? c < names_ : !right[c]); ++c) {
    if (c > 0 && named + widths[c] + 2 > most / 2) break;
    names.push_back(c);
    named += widths[c] + 2;
  }
  if (names.size() == headers_.size()) {  // the first column is enough if there is another
    names.resize(headers_.size() > 1 ? 1 : 0);
    named = names.empty() ? 0 : widths[0] + 2;
  }
  std::string text = title_.empty() ? "" : wrapped(title_, width > 0 ? width : 1 << 20);
  for (size_t c = names.size(); c < headers_.size();) {
    if (c > names.size()) text += "\n";
    std::vector<size_t> columns = names;
    size_t used = named;
    do {
      columns.push_back(c);
      used += widths[c++] + 2;
    } while (c < headers_.size() && used + widths[c] <= most);
    text += part(columns, width > 0 ? most : 0);
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
  std::string lines, line, word;
  while (words >> word) {
    if (!line.empty() && line.size() + 1 + word.size() > most) {
      lines += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return line.empty() ? lines : lines + line + "\n";
}

}  // namespace crais
