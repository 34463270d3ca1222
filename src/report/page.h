// The output of an experiment: tables and pictures, as files and on one page.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "report/html.h"
#include "report/plot.h"

namespace crais {

/// An entry of a table, in one form for people and one for programs.
struct Cell {
  std::string text;
  nlohmann::json value;

  Cell(std::string words);
  Cell(const char* words);
  Cell(int64_t number);
  /// A number with `decimals` places in text, and with all digits in files.
  static Cell number(double value, int decimals);
  /// Only text: "991.90 +- 69.87".
  static Cell with_spread(double value, double spread, int decimals);
};

/// Collects the findings of an experiment in a folder. A table goes at once to stdout, STEM.csv and
/// STEM.json; a picture to STEM.svg. `finish` writes index.html, which shows everything and refers
/// to no other file: paragraphs and tables in their order, then all pictures.
class Page {
 public:
  Page(std::filesystem::path folder, std::string title);

  void paragraph(const std::string& text);
  void table(const std::string& stem, const std::string& title,
             const std::vector<std::string>& headers, const std::vector<std::vector<Cell>>& rows);
  /// A table of minor interest, such as all settings but the best: in a fold on the page, one line
  /// on stdout, complete in its files.
  void folded_table(const std::string& stem, const std::string& title,
                    const std::vector<std::string>& headers,
                    const std::vector<std::vector<Cell>>& rows);
  void plot(const std::string& stem, const Plot& plot);
  void scatter(const std::string& stem, const Scatter& scatter);
  void finish();

 private:
  void add_picture(const std::string& stem, const std::string& title, const std::string& svg);

  struct Picture {
    std::string svg, title;
  };

  std::filesystem::path folder_;
  HtmlPage html_;
  std::vector<Picture> pictures_;
};

}  // namespace crais
