// A page of HTML in one file, which refers to no other file.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace crais {

/// Escapes text for HTML and SVG, between tags and in quoted attributes: markup in it is shown.
std::string escaped(const std::string& text);

/// One picture of a gallery with its caption.
struct GalleryItem {
  std::string png;                 // content of the file
  std::string alt;                 // for readers who cannot see the picture
  std::vector<std::string> lines;  // of the caption
};

/// A page whose parts stand in the order of the calls. Text is plain: markup in it is shown. The
/// page follows the reader's choice of light or dark, and is usable on paper, on a phone, by
/// keyboard and with a screen reader. Its content policy forbids scripts and all requests.
class HtmlPage {
 public:
  explicit HtmlPage(std::string title);

  /// The main result, at the top.
  void lead(const std::string& text);
  void heading(const std::string& text);
  void paragraph(const std::string& text);
  /// Text with significant lines and spaces: a command, an entry of a bibliography.
  void verbatim(const std::string& text);
  /// A table; the first cell of each row names the row. Throws Error kInternal if a row does not
  /// have one cell for every header.
  void table(const std::string& caption, const std::vector<std::string>& headers,
             const std::vector<std::vector<std::string>>& rows);
  /// An SVG picture in its own size, at most as wide as the page.
  void picture(const std::string& svg, const std::string& alt);
  /// An SVG picture half as wide as the page: two stand side by side.
  void drawing(const std::string& svg, const std::string& alt);
  void gallery(const std::string& caption, const std::vector<GalleryItem>& items);

  /// Begins a fold: the content up to `end_fold` is hidden until a reader opens it.
  void begin_fold(const std::string& summary);
  void end_fold();

  /// The whole page.
  std::string text() const;

 private:
  std::string title_, body_;
};

}  // namespace crais
