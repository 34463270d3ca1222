#include "programs/reproduce/page.h"

#include <iostream>
#include <utility>

#include "report/table.h"
#include "util/files.h"
#include "util/format.h"

namespace crais {
namespace {

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (std::string cell : cells) {
    for (size_t at = 0; (at = cell.find('|', at)) != std::string::npos; at += 2)
      cell.replace(at, 1, "\\|");
    line += " " + cell + " |";
  }
  return line + "\n";
}

}  // namespace

Cell Cell::number(double value, int decimals) {
  Cell cell(fixed(value, decimals));
  cell.value = CsvCell(value);
  return cell;
}

Cell Cell::with_spread(double value, double spread, int decimals) {
  return fixed(value, decimals) + " +- " + fixed(spread, decimals);
}

Page::Page(std::filesystem::path folder, const std::string& title)
    : folder_(std::move(folder)), markdown_("# " + title + "\n") {
  make_output_folder(folder_);
}

void Page::paragraph(const std::string& text) {
  std::cout << text << "\n";
  markdown_ += "\n" + text + "\n";
}

void Page::table(const std::string& stem, const std::string& title, const std::vector<Row>& rows,
                 bool folded) {
  std::vector<std::string> headers;
  for (const auto& [header, cell] : rows.at(0)) headers.push_back(header);
  Table plain(title);
  CsvWriter csv(headers);
  std::string lines = "\n## " + title + "\n\n" + markdown_row(headers) +
                      markdown_row(std::vector<std::string>(headers.size(), "---"));
  for (const Row& row : rows) {
    std::vector<std::string> texts;
    Table::NamedCells named;
    std::vector<CsvCell> values;
    for (const auto& [header, cell] : row) {
      texts.push_back(cell.text);
      named.emplace_back(header, cell.text);
      values.push_back(cell.value);
    }
    lines += markdown_row(texts);
    plain.add_row(named);
    csv.add_row(values);
  }
  write_file_atomic(folder_ / (stem + ".csv"), csv.text());
  if (!folded) {
    std::cout << plain.text(stdout_width()) << std::flush;
    markdown_ += lines;
    return;
  }
  const std::string count =
      title + ": " + with_commas(static_cast<int64_t>(rows.size())) + " rows in ";
  std::cout << count << (folder_ / (stem + ".csv")).string() << std::endl;
  markdown_ += "\n" + count + "[" + stem + ".csv](" + stem + ".csv)\n";
}

void Page::finish() const { write_file_atomic(folder_ / "tables.md", markdown_); }

}  // namespace crais
