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
    ".wide{overflow-x:auto}details{margin:1rem 0}summary{font-weight:600;cursor:pointer}"
    "svg{max-width:100%;height:auto}caption{text-align:left;font-weight:600;padding:.3rem 0}";

/// A table in the three forms that a page keeps it in.
struct Forms {
  Table plain;
  CsvWriter csv;
  nlohmann::json records;
  std::string html;
};

Forms forms_of(const std::string& title, const std::vector<std::string>& headers,
               const std::vector<std::vector<Cell>>& rows) {
  Forms forms{Table(headers, title), CsvWriter(headers), nlohmann::json::array(), ""};
  forms.html = "<tr>";
  for (const auto& header : headers) forms.html += "<th>" + escaped(header) + "</th>";
  forms.html += "</tr>\n";
  for (const auto& row : rows) {
    std::vector<std::string> texts;
    std::vector<CsvCell> cells;
    texts.reserve(row.size());
    cells.reserve(row.size());
    nlohmann::json record;
    forms.html += "<tr>";
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
      forms.html += "<td>" + escaped(row[i].text) + "</td>";
    }
    forms.html += "</tr>\n";
    forms.plain.add_row(texts);
    forms.csv.add_row(cells);
    forms.records.push_back(std::move(record));
  }
  return forms;
}

void write_forms(const std::filesystem::path& folder, const std::string& stem, const Forms& forms) {
  write_file_atomic(folder / (stem + ".csv"), forms.csv.text());
  write_file_atomic(folder / (stem + ".json"), to_text(forms.records));
}

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
  const Forms forms = forms_of(title, headers, rows);
  body_ += "<div class=\"wide\"><table><caption>" + escaped(title) + "</caption>" + forms.html +
           "</table></div>\n";
  std::cout << forms.plain.text(stdout_width()) << std::flush;
  write_forms(folder_, stem, forms);
}

void Page::folded_table(const std::string& stem, const std::string& title,
                        const std::vector<std::string>& headers,
                        const std::vector<std::vector<Cell>>& rows) {
  const Forms forms = forms_of(title, headers, rows);
  const std::string count = with_commas(static_cast<int64_t>(rows.size())) + " rows";
  body_ += "<details><summary>" + escaped(title) + " (" + count +
           ")</summary><div class=\"wide\"><table>" + forms.html + "</table></div></details>\n";
  std::cout << title << ": " << count << " in " << (folder_ / (stem + ".csv")).string()
            << std::endl;
  write_forms(folder_, stem, forms);
}

void Page::plot(const std::string& stem, const Plot& plot) {
  show(stem, write_plot(folder_ / stem, plot));
}

void Page::scatter(const std::string& stem, const Scatter& scatter) {
  show(stem, write_scatter(folder_ / stem, scatter));
}

void Page::show(const std::string& stem, bool drawn) {
  if (!drawn) {
    if (!missed_gnuplot_)
      std::cerr << "gnuplot is not installed: the numbers are written, the pictures are not (apt "
                   "install gnuplot-nox)\n";
    missed_gnuplot_ = true;
    return;
  }
  const std::string svg = read_file(folder_ / (stem + ".svg"));
  const auto start = svg.find("<svg");  // without the XML declaration
  pictures_ += "<div>" + svg.substr(start == std::string::npos ? 0 : start) + "</div>\n";
}

void Page::finish() const {
  write_file_atomic(folder_ / "index.html",
                    "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>" +
                        escaped(title_) + "</title><style>" + kStyle + "</style></head><body><h1>" +
                        escaped(title_) + "</h1>\n" + body_ + pictures_ + "</body></html>\n");
}

}  // namespace crais
