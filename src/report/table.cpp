#include "report/table.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "util/error.h"

namespace crais {
namespace {

/// "12", "-87.31 +- 0.21", "+3", ".5", "1,024", "nan"; also "", "-" and "?", which stand for a
/// number that is not there.
bool reads_as_number(const std::string& cell) {
  if (cell.empty() || cell == "-" || cell == "?") return true;
  const size_t first = cell[0] == '-' || cell[0] == '+' ? 1 : 0;
  if (cell.compare(first, 3, "nan") == 0 || cell.compare(first, 3, "inf") == 0) return true;
  const size_t digit = first + (first < cell.size() && cell[first] == '.' ? 1 : 0);
  return digit < cell.size() && std::isdigit(static_cast<unsigned char>(cell[digit])) != 0;
}

/// Characters, not bytes, lest a name in another alphabet shift its line.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

}  // namespace

Table::Table(std::vector<std::string> headers, std::string title)
    : title_(std::move(title)), headers_(std::move(headers)) {}

void Table::add_row(std::vector<std::string> cells) {
  if (cells.size() != headers_.size())
    throw Error(ErrorKind::kInternal, "a table row has " + std::to_string(cells.size()) +
                                          " cells for " + std::to_string(headers_.size()) +
                                          " columns");
  rows_.push_back(std::move(cells));
}

void Table::add_rule() { rows_.emplace_back(); }

std::string Table::text() const {
  std::vector<size_t> widths(headers_.size());
  std::vector<bool> right(headers_.size(), !rows_.empty());
  size_t full_width = headers_.empty() ? 0 : 2 * (headers_.size() - 1);
  for (size_t c = 0; c < headers_.size(); ++c) {
    widths[c] = width_of(headers_[c]);
    for (const Row& row : rows_) {
      if (row.empty()) continue;
      widths[c] = std::max(widths[c], width_of(row[c]));
      right[c] = right[c] && reads_as_number(row[c]);
    }
    full_width += widths[c];
  }
  const std::string rule = std::string(full_width, '-') + "\n";
  const auto line = [&](const Row& row) {
    std::string text;
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string space(widths[c] - width_of(row[c]), ' ');
      text += (c == 0 ? "" : "  ") + (right[c] ? space + row[c] : row[c] + space);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  };
  std::string text = (title_.empty() ? "" : title_ + "\n") + line(headers_) + rule;
  for (const Row& row : rows_) text += row.empty() ? rule : line(row);
  return text;
}

}  // namespace crais
