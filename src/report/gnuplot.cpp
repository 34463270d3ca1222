#include "report/gnuplot.h"

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>

#include "util/error.h"

namespace crais {
namespace {

namespace fs = std::filesystem;

std::string size_of(int width, int height) {
  return " size " + std::to_string(width) + "," + std::to_string(height);
}

std::string script(const fs::path& svg, const fs::path& png, const Drawing& d) {
  return "set encoding utf8\n" + d.settings + "set terminal svg" + size_of(d.width, d.height) +
         " dynamic rounded font 'sans-serif,13' background 'white'\nset output " +
         gnuplot_text(svg.string()) + "\n" + d.commands + "unset output\nset terminal pngcairo" +
         size_of(d.width * 4 / 3, d.height * 4 / 3) + " rounded font 'sans-serif,13'\nset output " +
         gnuplot_text(png.string()) + "\n" + d.commands + "unset output\n";
}

}  // namespace

std::string gnuplot_text(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "''" : std::string(1, c);
  return out + "'";
}

bool write_drawing(const fs::path& stem, const Drawing& drawing) {
  const fs::path svg = stem.string() + ".svg", png = stem.string() + ".png";
  const fs::path new_svg = svg.string() + ".tmp", new_png = png.string() + ".tmp";
  if (std::system("command -v gnuplot >/dev/null 2>&1") != 0) return false;
  FILE* gnuplot = popen("gnuplot 2>/dev/null", "w");
  if (!gnuplot) throw Error(ErrorKind::kIo, "gnuplot could not be started");
  const std::string commands = script(new_svg, new_png, drawing);
  std::fwrite(commands.data(), 1, commands.size(), gnuplot);
  const int status = pclose(gnuplot);
  std::error_code ignored;
  if (status != 0 || !fs::exists(new_svg, ignored) || !fs::exists(new_png, ignored)) {
    fs::remove(new_svg, ignored);
    fs::remove(new_png, ignored);
    throw Error(ErrorKind::kIo, "gnuplot failed to draw " + svg.string());
  }
  fs::rename(new_svg, svg);
  fs::rename(new_png, png);
  return true;
}

}  // namespace crais
