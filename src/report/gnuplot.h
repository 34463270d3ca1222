// Gnuplot: what every picture needs of it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace crais {

/// Text in gnuplot's single quotes.
std::string gnuplot_text(const std::string& text);

/// A picture in gnuplot's language: data blocks and settings, then what draws them.
struct Drawing {
  int width = 960, height = 540;  // of the SVG, pixels; the PNG is a third larger
  std::string settings, commands;
};

/// The drawing in the size of which two stand side by side on a page, and are read even so.
Drawing half_page(Drawing drawing);

/// The picture as SVG; nothing if there is no gnuplot. Throws Error kIo if gnuplot fails.
std::optional<std::string> svg_of(const Drawing& drawing);

/// The picture as PNG, a third larger.
std::optional<std::string> png_of(const Drawing& drawing);

/// Writes STEM.svg and STEM.png, both or neither. False if there is no gnuplot.
/// Throws Error kIo if gnuplot fails.
bool write_drawing(const std::filesystem::path& stem, const Drawing& drawing);

}  // namespace crais
