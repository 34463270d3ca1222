#include "report/page.h"

#include <iostream>
#include <utility>

#include "io/csv.h"
#include "io/json.h"
#include "report/table.h"
#include "util/files.h"
#include "util/format.h"

namespace crais {
namespace {

/// The forms of a table on a page.
struct Forms {
  Table plain;
  CsvWriter csv;
  nlohmann::json records;
};

Forms forms_of(const std::string& title, const std::vector<std::string>& headers,
               const std::vector<std::vector<Cell>>& rows) {
  Forms forms{Table(headers, title), CsvWriter(headers), nlohmann::json::array()};
  for (const auto& row : rows) {
    std::vector<std::string> texts;
    std::vector<CsvCell> cells;
    texts.reserve(row.size());
    cells.reserve(row.size());
    nlohmann::json record;
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
    }
    forms.plain.add_row(std::move(texts));
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
    : folder_(std::move(folder)), html_(std::move(title)) {
  make_output_folder(folder_);
}

void Page::paragraph(const std::string& text) {
  std::cout << text << "\n";
  html_.paragraph(text);
}

void Page::table(const std::string& stem, const std::string& title,
                 const std::vector<std::string>& headers,
                 const std::vector<std::vector<Cell>>& rows) {
  const Forms forms = forms_of(title, headers, rows);
  html_.table(title, headers, forms.plain.rows());
  std::cout << forms.plain.text(stdout_width()) << std::flush;
  write_forms(folder_, stem, forms);
}

void Page::folded_table(const std::string& stem, const std::string& title,
                        const std::vector<std::string>& headers,
                        const std::vector<std::vector<Cell>>& rows) {
  const Forms forms = forms_of(title, headers, rows);
  const std::string count = with_commas(static_cast<int64_t>(rows.size())) + " rows";
  html_.begin_fold(title + " (" + count + ")");
  html_.table(title, headers, forms.plain.rows());
  html_.end_fold();
  std::cout << title << ": " << count << " in " << (folder_ / (stem + ".csv")).string()
            << std::endl;
  write_forms(folder_, stem, forms);
}

void Page::plot(const std::string& stem, const Plot& plot) {
  add_picture(stem, plot.title, svg_of(plot));
}

void Page::scatter(const std::string& stem, const Scatter& scatter) {
  add_picture(stem, scatter.title, svg_of(scatter));
}

void Page::add_picture(const std::string& stem, const std::string& title, const std::string& svg) {
  write_file_atomic(folder_ / (stem + ".svg"), svg);
  pictures_.push_back({svg, title});
}

void Page::finish() {
  for (const Picture& picture : pictures_) html_.picture(picture.svg, picture.title);
  pictures_.clear();
  write_file_atomic(folder_ / "index.html", html_.text());
}

}  // namespace crais
