#include "io/amat.h"

#include <cstring>
#include <string>
#include <string_view>

#include "io/gzip.h"
#include "util/error.h"
#include "util/files.h"

namespace crais {
namespace {

constexpr int64_t kWidth = 28 * 28;
constexpr const char* kBlanks = " \t\r\n";

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

/// Appends the line's numbers to `values`, 1 as 255. Returns the position of the first thing that
/// is not 0 or 1, or npos.
size_t parse_line(std::string_view line, std::string& values) {
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (is_blank(c)) continue;
    if ((c != '0' && c != '1') || (i + 1 < line.size() && !is_blank(line[i + 1]))) return i;
    values += c == '1' ? '\xff' : '\0';
  }
  return std::string_view::npos;
}

/// All numbers of all lines, each line checked.
std::string parse(std::string_view text, const std::string& name) {
  text = text.substr(0, text.find_last_not_of(kBlanks) + 1);  // npos + 1 is 0: nothing but blanks
  if (text.empty()) throw data_error(name + ": empty: it holds no images");
  std::string values;
  values.reserve(text.size() / 2 + 1);
  for (int64_t number = 1; !text.empty(); ++number) {
    const std::string where = name + ": line " + std::to_string(number) + ": ";
    const std::string_view line = take_line(text);
    const size_t before = values.size(), bad = parse_line(line, values);
    if (bad != std::string_view::npos) {
      const std::string_view word = line.substr(bad).substr(0, 20);
      throw data_error(where + "'" + std::string(word.substr(0, word.find_first_of(kBlanks))) +
                       "' is not 0 or 1");
    }
    if (values.size() - before != size_t{kWidth})
      throw data_error(where + std::to_string(values.size() - before) + " numbers, " +
                       std::to_string(kWidth) + " (28 x 28) expected");
  }
  return values;
}

}  // namespace

AmatImages read_amat(const std::filesystem::path& path) {
  std::string text = read_file(path);
  if (is_gzip(text)) text = gunzip(text, path.string());
  const std::string values = parse(text, path.string());
  AmatImages images{at::empty({static_cast<int64_t>(values.size()) / kWidth, kWidth}, at::kByte),
                    md5(text)};
  std::memcpy(images.pixels.data_ptr<uint8_t>(), values.data(), values.size());
  return images;
}

}  // namespace crais
