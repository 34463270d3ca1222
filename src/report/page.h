// What an experiment leaves: tables and pictures, as files and on one page.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "report/html.h"
#include "report/plot.h"

namespace crais {

/// A table's entry: as people read it, and as programs do.
struct Cell {
  std::string text;
  nlohmann::json value;

  Cell(std::string words);
  Cell(const char* words);
  Cell(int64_t number);
  /// To `decimals` places in text, whole in files.
  static Cell number(double value, int decimals);
  /// Text alone: "991.90 +- 69.87".
  static Cell with_spread(double value, double spread, int decimals);
};

/// Collects an experiment's findings in a folder. Tables go to stdout as they come, and as
/// STEM.csv and STEM.json; pictures as STEM.svg; `finish` writes index.html, which
/// shows everything and refers to no other file: paragraphs and tables in their order, then every
/// picture, whenever it came.
class Page {
 public:
  Page(std::filesystem::path folder, std::string title);

  void paragraph(const std::string& text);
  void table(const std::string& stem, const std::string& title,
             const std::vector<std::string>& headers, const std::vector<std::vector<Cell>>& rows);
  /// A table that few will read, such as every setting below the best ones: closed on the page
  /// until a reader opens it, one line on stdout, whole in its files.
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
