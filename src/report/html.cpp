#include "report/html.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "util/base64.h"
#include "util/error.h"
#include "util/format.h"

namespace crais {
namespace {

/// The text with typographic signs in place of the ASCII signs of programs.
std::string words(const std::string& text) {
  std::string out = escaped(text);
  for (size_t i = out.find("+-"); i != std::string::npos; i = out.find("+-", i))
    out.replace(i, 2, "\u00b1");
  return out;
}

std::string image(const std::string& type, const std::string& content, const std::string& alt) {
  return "<img src=\"data:" + type + ";base64," + to_base64(content) + "\" alt=\"" + escaped(alt) +
         "\">";
}

// The dark page inverts black and white of the pictures and keeps their hues.
constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--ink:#222;--paper:#fff;--line:#ddd;--rule:#888;--lead:#eef3f9}
body{font:1rem/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;
color:var(--ink);background:var(--paper);overflow-wrap:break-word}
.lead{font-size:1.2rem;background:var(--lead);padding:.7rem 1rem;border-radius:.4rem}
table{border-collapse:collapse;margin:1rem 0;font-size:.9rem}
td,th{padding:.2rem .7rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}
td:first-child,th:first-child,.words{text-align:left}
td.words{white-space:normal;min-width:8rem}
tbody th{font-weight:400}
thead th{border-bottom:2px solid var(--rule)}
caption,figcaption{text-align:left}
caption{font-weight:600;padding:.3rem 0}
.wide{overflow-x:auto}
details{margin:1rem 0}
summary{font-weight:600;cursor:pointer}
pre{white-space:pre-wrap;overflow-wrap:anywhere;border:1px solid var(--line);border-radius:.4rem;
padding:.6rem .8rem;font-size:.85rem}
.picture img{max-width:100%;height:auto}
.drawing{display:inline-block;width:calc(50% - .7rem);margin:.3rem .3rem .3rem 0;overflow-x:auto;
vertical-align:top}
.drawing img{max-width:100%;min-width:28rem;height:auto}
.gallery{display:flex;flex-wrap:wrap;gap:.8rem;list-style:none;padding:0}
.gallery figure{margin:0;width:6.5rem;font-size:.8rem;line-height:1.3}
.gallery img{width:100%;image-rendering:pixelated}
@media screen and (prefers-color-scheme:dark){
:root{--ink:#ddd;--paper:#16181c;--line:#3a3d42;--rule:#777;--lead:#232a33}
.picture img,.drawing img{filter:invert(.9) hue-rotate(180deg)}}
@media (max-width:60rem){.drawing{width:100%}}
@media (max-width:40rem){body{margin:1rem auto;font-size:.95rem}td,th{padding:.2rem .4rem}}
@media print{body{max-width:none;margin:0}.gallery,tr,.drawing,.picture{break-inside:avoid}}
)";

constexpr size_t kLongestNumber = 24;  // characters of a cell with its error: "-85.111 +- 0.724"

// Pictures are part of the page. Nothing else may be loaded or run.
constexpr const char* kPolicy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

}  // namespace

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const char* const name = c == '&'   ? "&amp;"
                             : c == '<' ? "&lt;"
                             : c == '>' ? "&gt;"
                             : c == '"' ? "&quot;"
                                        : nullptr;
    out += name ? name : std::string(1, c);
  }
  return out;
}

HtmlPage::HtmlPage(std::string title) : title_(std::move(title)) {}

void HtmlPage::lead(const std::string& text) {
  body_ += "<p class=\"lead\">" + words(text) + "</p>\n";
}

void HtmlPage::heading(const std::string& text) { body_ += "<h2>" + words(text) + "</h2>\n"; }

void HtmlPage::paragraph(const std::string& text) { body_ += "<p>" + words(text) + "</p>\n"; }

void HtmlPage::verbatim(const std::string& text) {
  body_ += "<pre tabindex=\"0\">" + escaped(text) + "</pre>\n";
}

void HtmlPage::table(const std::string& caption, const std::vector<std::string>& headers,
                     const std::vector<std::vector<std::string>>& rows) {
  for (const auto& row : rows)
    if (row.size() != headers.size())
      throw internal_error("a table's row without a cell for every header");
  // A keyboard must reach whatever scrolls, which therefore needs a name.
  body_ += "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"" + escaped(caption) +
           "\"><table><caption>" + words(caption) + "</caption>\n<thead><tr>";
  std::vector<std::string> kinds;  // of columns: text is left-aligned and may take several lines
  for (size_t i = 0; i < headers.size(); ++i) {
    const bool has_words = std::any_of(rows.begin(), rows.end(), [&](const auto& row) {
      return i > 0 && row[i].size() > kLongestNumber;
    });
    kinds.emplace_back(has_words ? " class=\"words\"" : "");
    body_ += "<th scope=\"col\"" + kinds[i] + ">" + words(headers[i]) + "</th>";
  }
  body_ += "</tr></thead>\n<tbody>\n";
  for (const auto& row : rows) {
    body_ += "<tr>";
    for (size_t i = 0; i < row.size(); ++i)
      body_ += i == 0 ? "<th scope=\"row\">" + words(row[i]) + "</th>"
                      : "<td" + kinds[i] + ">" + words(row[i]) + "</td>";
    body_ += "</tr>\n";
  }
  body_ += "</tbody></table></div>\n";
}

void HtmlPage::picture(const std::string& svg, const std::string& alt) {
  body_ += "<p class=\"picture\">" + image("image/svg+xml", svg, alt) + "</p>\n";
}

void HtmlPage::drawing(const std::string& svg, const std::string& alt) {
  body_ += "<div class=\"drawing\" tabindex=\"0\">" + image("image/svg+xml", svg, alt) + "</div>\n";
}

void HtmlPage::gallery(const std::string& caption, const std::vector<GalleryItem>& items) {
  body_ += "<p>" + words(caption) + "</p>\n<ul class=\"gallery\">\n";
  for (const GalleryItem& item : items) {
    body_ += "<li><figure>" + image("image/png", item.png, item.alt) + "<figcaption>";
    for (size_t i = 0; i < item.lines.size(); ++i)
      body_ += (i == 0 ? "" : "<br>") + words(item.lines[i]);
    body_ += "</figcaption></figure></li>\n";
  }
  body_ += "</ul>\n";
}

void HtmlPage::begin_fold(const std::string& summary) {
  body_ += "<details><summary>" + words(summary) + "</summary>\n";
}

void HtmlPage::end_fold() { body_ += "</details>\n"; }

std::string HtmlPage::text() const {
  return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"" +
         std::string(kPolicy) +
         "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
         escaped(title_) + "</title>\n<style>" + kStyle + "</style></head>\n<body><main><h1>" +
         escaped(title_) + "</h1>\n" + body_ + "</main></body></html>\n";
}

}  // namespace crais
