// A page of HTML in one file: it opens from disk and refers to nothing outside.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace crais {

/// Text between the tags of HTML and SVG, and in their quoted attributes: markup in it is shown.
std::string escaped(const std::string& text);

/// One picture of a gallery, with what stands below it.
struct GalleryItem {
  std::string png;                 // content of the file
  std::string alt;                 // for those who do not see it
  std::vector<std::string> lines;  // of the caption
};

/// Parts stand in the order of the calls. Text is plain: markup in it is shown, never obeyed. The
/// page follows the reader's choice of light or dark, and reads on paper, on a phone, by keyboard
/// and aloud. Its policy for content forbids scripts and every request.
class HtmlPage {
 public:
  explicit HtmlPage(std::string title);

  /// The answer, before all else.
  void lead(const std::string& text);
  void heading(const std::string& text);
  void paragraph(const std::string& text);
  /// Text whose lines and spaces count: a command, an entry of a bibliography.
  void verbatim(const std::string& text);
  /// The first cell of each row names it. Throws Error kInternal unless there is a cell for every
  /// header.
  void table(const std::string& caption, const std::vector<std::string>& headers,
             const std::vector<std::vector<std::string>>& rows);
  /// SVG in its own size, or as wide as the page.
  void picture(const std::string& svg, const std::string& alt);
  /// SVG half as wide as the page, so that two stand side by side.
  void drawing(const std::string& svg, const std::string& alt);
  void gallery(const std::string& caption, const std::vector<GalleryItem>& items);

  /// What follows until `end_fold` is closed until a reader opens it.
  void begin_fold(const std::string& summary);
  void end_fold();

  /// The whole file.
  std::string text() const;

 private:
  std::string title_, body_;
};

}  // namespace crais
