#include "report/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <sstream>

namespace crais {

int terminal_width(int descriptor) {
  winsize size{};
  if (::isatty(descriptor) != 1) return 0;
  const bool known = ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

int stdout_width() { return terminal_width(STDOUT_FILENO); }

std::string wrapped(const std::string& text, int width) {
  const auto most = static_cast<size_t>(width > 0 ? width : 80);
  std::istringstream words(text);
  std::string lines, line, word;
  while (words >> word) {
    if (!line.empty() && line.size() + 1 + word.size() > most) {
      lines += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return line.empty() ? lines : lines + line + "\n";
}

}  // namespace crais
