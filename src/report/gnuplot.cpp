#include "report/gnuplot.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>

#include "util/error.h"
#include "util/files.h"

namespace crais {
namespace {

namespace fs = std::filesystem;

/// A file without a name, gone when it is closed.
class NamelessFile {
 public:
  explicit NamelessFile(const std::string& content = "") : file_(std::tmpfile(), &std::fclose) {
    if (!file_ || std::fwrite(content.data(), 1, content.size(), file_.get()) != content.size() ||
        std::fflush(file_.get()) != 0)
      throw Error(ErrorKind::kIo, "no temporary file can be written");
    std::rewind(file_.get());
  }
  int descriptor() const { return ::fileno(file_.get()); }
  std::string content() const {
    std::rewind(file_.get());
    std::string text;
    char block[4096];
    while (const size_t size = std::fread(block, 1, sizeof block, file_.get()))
      text.append(block, size);
    return text;
  }

 private:
  std::unique_ptr<FILE, int (*)(FILE*)> file_;
};

/// What gnuplot prints when it reads `commands`; nothing if there is no gnuplot. Neither a shell
/// nor a file name is in it: nothing that a user types becomes a command.
std::optional<std::string> printed_by_gnuplot(const std::string& commands) {
  const NamelessFile input(commands), output;
  posix_spawn_file_actions_t streams;
  ::posix_spawn_file_actions_init(&streams);
  ::posix_spawn_file_actions_adddup2(&streams, input.descriptor(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&streams, output.descriptor(), STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&streams, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::string name = "gnuplot";
  char* const arguments[] = {name.data(), nullptr};
  pid_t process = 0;
  const int refused = ::posix_spawnp(&process, name.c_str(), &streams, nullptr, arguments, environ);
  ::posix_spawn_file_actions_destroy(&streams);
  if (refused == ENOENT) return {};
  int status = refused;
  if (refused == 0)
    while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
    }
  const std::string picture = output.content();
  if (status != 0 || picture.empty()) throw Error(ErrorKind::kIo, "gnuplot failed to draw");
  return picture;
}

std::string script(const std::string& terminal, int width, int height, const Drawing& d) {
  return "set encoding utf8\n" + d.settings + "set terminal " + terminal + " size " +
         std::to_string(width) + "," + std::to_string(height) + "\n" + d.commands +
         "unset output\n";
}

}  // namespace

std::string gnuplot_text(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') out += c;
    const bool is_control = static_cast<unsigned char>(c) < ' ' || c == '\x7f';
    out += is_control ? ' ' : c;  // a newline would begin a command
  }
  return out + "'";
}

Drawing half_page(Drawing drawing) {
  drawing.width = 600;
  drawing.height = 380;
  return drawing;
}

std::optional<std::string> svg_of(const Drawing& drawing) {
  return printed_by_gnuplot(script("svg dynamic rounded font 'sans-serif,13' background 'white'",
                                   drawing.width, drawing.height, drawing));
}

std::optional<std::string> png_of(const Drawing& drawing) {
  return printed_by_gnuplot(script("pngcairo rounded font 'sans-serif,13'", drawing.width * 4 / 3,
                                   drawing.height * 4 / 3, drawing));
}

bool write_drawing(const fs::path& stem, const Drawing& drawing) {
  const auto svg = svg_of(drawing);
  if (!svg) return false;
  const auto png = png_of(drawing);
  if (!png) return false;
  write_file_atomic(stem.string() + ".svg", *svg);
  write_file_atomic(stem.string() + ".png", *png);
  return true;
}

}  // namespace crais
