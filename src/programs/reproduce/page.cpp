#include "programs/reproduce/page.h"

#include <cmath>
#include <iostream>
#include <regex>
#include <utility>

#include "core/spec.h"
#include "io/csv.h"
#include "programs/reproduce/matching.h"
#include "report/table.h"
#include "util/error.h"
#include "util/files.h"
#include "util/format.h"

namespace crais {
namespace {

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells)
    line += " " + std::regex_replace(cell, std::regex("\\|"), "\\|") + " |";
  return line + "\n";
}

}  // namespace

Cell cell_of(const std::string& column, const nlohmann::json& values, const VariantResult& result,
             const Measures& measures) {
  static const std::regex kColumn(
      "(.*?) = (?:(.*?)(?: [+]- (.*))?:([0-9])( at length)?( or reason)?|(.*))");
  std::smatch part;
  if (!std::regex_match(column, part, kColumn))
    throw data_error("a column is 'header = value', not '" + column + "'");
  const std::ssub_match sum = part[2], spread = part[3], decimals = part[4];
  const bool at_length = part[5].matched, or_reason = part[6].matched;
  Cell cell;
  cell.header = part[1];
  cell.is_number = decimals.matched;
  const auto of = [&](const std::string& names) {
    return number(values, text(values, names), measures);
  };
  const auto shown = [&](double value) { return fixed(value, std::stoi(decimals)); };
  if (!cell.is_number) {
    cell.text = trimmed(text(values, part[7]));
  } else if (or_reason && !result.failed.empty()) {
    cell.text = trimmed(result.failed.substr(0, result.failed.find_first_of("(;:")));
  } else if (const double value = of(sum); std::isnan(value)) {
    cell.text = "-";
  } else {
    cell.text = shown(value);
    const double transitions = measures.at("transitions");
    if (spread.matched)
      cell.text += " +- " + shown(of(spread));
    else if (at_length && !is_fair(transitions, integer(values, "steps", 0)))
      cell.text += " (M = " + fixed(transitions, 0) + ")";
    else
      cell.csv = CsvCell(value).text();
  }
  if (cell.csv.empty()) cell.csv = cell.text;
  return cell;
}

Page::Page(std::filesystem::path folder, const std::string& title)
    : folder_(std::move(folder)), markdown_("# " + title + "\n") {
  make_output_folder(folder_);
}

void Page::paragraph(const std::string& text) {
  std::cout << text << "\n";
  markdown_ += "\n" + text + "\n";
}

void Page::table(const std::string& stem, const std::string& title,
                 const std::vector<std::vector<Cell>>& rows, bool folded) {
  if (rows.empty()) return;
  std::vector<std::string> headers;
  for (const Cell& cell : rows[0]) headers.push_back(cell.header);
  Table plain(title);
  CsvWriter csv(headers);
  std::string lines =
      markdown_row(headers) + markdown_row(std::vector<std::string>(headers.size(), "---"));
  for (const std::vector<Cell>& row : rows) {
    Table::NamedCells named;
    std::vector<CsvCell> values;
    for (const Cell& cell : row) {
      named.emplace_back(cell.header, cell.text);
      values.emplace_back(cell.csv);
    }
    plain.add_row(named);
    csv.add_row(values);
    lines += markdown_row(plain.rows().back());
  }
  write_file_atomic(folder_ / (stem + ".csv"), csv.text());
  if (!folded) {
    std::cout << plain.text(stdout_width()) << std::flush;
    markdown_ += "\n## " + title + "\n\n" + lines;
    return;
  }
  const std::string count =
      title + ": " + with_commas(static_cast<int64_t>(rows.size())) + " rows in ";
  std::cout << count << (folder_ / (stem + ".csv")).string() << std::endl;
  markdown_ += "\n" + count + "[" + stem + ".csv](" + stem + ".csv)\n";
}

void Page::finish() const { write_file_atomic(folder_ / "tables.md", markdown_); }

}  // namespace crais
