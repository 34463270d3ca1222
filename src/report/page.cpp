#include "report/page.h"

#include <iostream>
#include <utility>

#include "io/csv.h"
#include "io/json.h"
#include "report/table.h"
#include "report/terminal.h"
#include "util/files.h"
#include "util/format.h"

namespace crais {
namespace {

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c;
  }
  return out;
}

constexpr const char* kStyle =
    "body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;"
    "color:#222}table{border-collapse:collapse;margin:1rem 0;font-size:14px}"
    "td,th{padding:.2rem .7rem;border-bottom:1px solid #ddd;text-align:right;white-space:nowrap}"
    "td:first-child,th:first-child{text-align:left}th{border-bottom:2px solid #888}"
    "svg{max-width:100%;height:auto}caption{text-align:left;font-weight:600;padding:.3rem 0}";

}  // namespace

Cell::Cell(std::string words) : text(std::move(words)), value(text) {}
Cell::Cell(const char* words) : Cell(std::string(words)) {}
Cell::Cell(int64_t number) : text(with_commas(number)), value(number) {}
Cell Cell::number(double value, int decimals) {
  Cell cell(fixed(value, decimals));
  cell.value = json_number(value);
  return cell;
}

Cell Cell::with_spread(double value, double spread, int decimals) {
  return fixed(value, decimals) + " +- " + fixed(spread, decimals);
}

Page::Page(std::filesystem::path folder, std::string title)
    : folder_(std::move(folder)), title_(std::move(title)) {
  make_output_folder(folder_);
}

void Page::paragraph(const std::string& text) {
  std::cout << text << "\n";
  body_ += "<p>" + escaped(text) + "</p>\n";
}

void Page::table(const std::string& stem, const std::string& title,
                 const std::vector<std::string>& headers,
                 const std::vector<std::vector<Cell>>& rows) {
  Table plain(headers, title);
  CsvWriter csv(headers);
  nlohmann::json records = nlohmann::json::array();
  body_ += "<table><caption>" + escaped(title) + "</caption><tr>";
  for (const auto& header : headers) body_ += "<th>" + escaped(header) + "</th>";
  body_ += "</tr>\n";
  for (const auto& row : rows) {
    std::vector<std::string> texts;
    std::vector<CsvCell> cells;
    nlohmann::json record;
    body_ += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
      texts.push_back(row[i].text);
      const auto& value = row[i].value;
      if (value.is_number_float())
        cells.emplace_back(value.get<double>());
      else if (value.is_number_integer())
        cells.emplace_back(value.get<int64_t>());
      else
        cells.emplace_back(value.is_string() ? value.get<std::string>() : row[i].text);
      record[headers[i]] = value;
      body_ += "<td>" + escaped(row[i].text) + "</td>";
    }
    body_ += "</tr>\n";
    plain.add_row(texts);
    csv.add_row(cells);
    records.push_back(std::move(record));
  }
  body_ += "</table>\n";
  std::cout << plain.text(stdout_width()) << std::flush;
  write_file_atomic(folder_ / (stem + ".csv"), csv.text());
  write_file_atomic(folder_ / (stem + ".json"), to_text(records));
}

void Page::plot(const std::string& stem, const Plot& plot) {
  if (!write_plot(folder_ / stem, plot)) {
    if (!missed_gnuplot_)
      std::cerr << "gnuplot is not installed: the numbers are written, the pictures are not (apt "
                   "install gnuplot-nox)\n";
    missed_gnuplot_ = true;
    return;
  }
  const std::string svg = read_file(folder_ / (stem + ".svg"));
  const auto start = svg.find("<svg");  // without the XML declaration
  body_ += "<div>" + svg.substr(start == std::string::npos ? 0 : start) + "</div>\n";
}

void Page::finish() const {
  write_file_atomic(folder_ / "index.html",
                    "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>" +
                        escaped(title_) + "</title><style>" + kStyle + "</style></head><body><h1>" +
                        escaped(title_) + "</h1>\n" + body_ + "</body></html>\n");
}

}  // namespace crais
