#include "io/mnist_files.h"

#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "io/tensor_bytes.h"
#include "io/zip.h"
#include "util/digest.h"
#include "util/error.h"
#include "util/format.h"

namespace crais {
namespace {

struct Header {
  std::vector<int64_t> shape;
  uint64_t file_size = 0;  // header and values
};

/// The number of four bytes from `i` on.
int64_t number_at(std::string_view bytes, size_t i) {
  return static_cast<int64_t>(number_of_bytes(bytes.substr(i, 4), /*is_big=*/true));
}

/// The first four bytes in hexadecimal.
std::string hex(std::string_view bytes) {
  char digits[9];
  std::snprintf(digits, sizeof digits, "%08x", static_cast<unsigned>(number_at(bytes, 0)));
  return digits;
}

Header parse_header(std::string_view start, size_t dimensions, const std::string& name) {
  const std::string expected =
      dimensions == 3 ? "00000803 (images of unsigned bytes)" : "00000801 (labels)";
  const size_t header_size = 4 + 4 * dimensions;
  if (start.size() < 4)
    throw data_error(name, ": truncated: ", start.size(), " bytes are too few for an IDX file");
  const int64_t magic = number_at(start, 0), type = magic >> 8, found = magic & 0xff;
  if (type > 0xff)
    throw data_error(name, ": not an IDX file: it begins with ", hex(start), ", expected ",
                     expected);
  if (type != 0x08)
    throw data_error(name, ": IDX data of type 0x", hex(start).substr(4, 2),
                     "; unsigned bytes (type 0x08) were expected");
  if (found != static_cast<int64_t>(dimensions))
    throw data_error(name, ": IDX data of ", found, " dimensions (magic ", hex(start),
                     "), expected ", expected);
  if (start.size() < header_size)
    throw data_error(name, ": truncated within its header: ", start.size(), " of ", header_size,
                     " bytes");
  Header header{.file_size = header_size};
  uint64_t count = 1;
  for (size_t d = 0; d < dimensions; ++d) {
    const int64_t extent = number_at(start, 4 + 4 * d);
    header.shape.push_back(extent);
    if (extent == 0)
      throw data_error(name, ": empty: its header says ", (d == 0 ? "0 items" : "0 pixels"));
    if (count > static_cast<uint64_t>(std::numeric_limits<int64_t>::max() / 2 / extent))
      throw data_error(name, ": impossible size in its header: over 2^62 values");
    count *= static_cast<uint64_t>(extent);
  }
  header.file_size += count;
  return header;
}

IdxArray read_idx(const std::filesystem::path& path, size_t dimensions) {
  const std::string name = path.string(), content = read_unpacked(path);
  const Header header = parse_header(content, dimensions, name);
  if (content.size() < header.file_size)
    throw data_error(name, ": truncated: its header says ", shape_text(header.shape), ", which is ",
                     header.file_size, " bytes, but ", content.size(), " are there");
  if (content.size() > header.file_size)
    throw data_error(name, ": junk after its ", shape_text(header.shape),
                     " values: ", header.file_size, " bytes were expected");
  const std::string_view values = std::string_view(content).substr(4 + 4 * dimensions);
  return {tensor_of_bytes(values, header.shape, at::kByte), md5(content)};
}

constexpr int64_t kWidth = 28 * 28;
constexpr const char* kBlanks = " \t\r\n";

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

/// Appends the line's numbers to `values`, with 1 as 255. Returns the position of the first
/// character that is neither 0 nor 1, or npos.
size_t parse_line(std::string_view line, std::string& values) {
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (is_blank(c)) continue;
    if ((c != '0' && c != '1') || (i + 1 < line.size() && !is_blank(line[i + 1]))) return i;
    values += c == '1' ? '\xff' : '\0';
  }
  return std::string_view::npos;
}

/// The numbers of all lines. Checks each line.
std::string parse(std::string_view text, const std::string& name) {
  text = text.substr(0, text.find_last_not_of(kBlanks) + 1);  // npos + 1 is 0: all blanks
  if (text.empty()) throw data_error(name, ": empty: it holds no images");
  std::string values;
  values.reserve(text.size() / 2 + 1);
  for (int64_t number = 1; !text.empty(); ++number) {
    const std::string where = name + ": line " + std::to_string(number) + ": ";
    const std::string_view line = take_line(text);
    const size_t before = values.size(), bad = parse_line(line, values);
    if (bad != std::string_view::npos) {
      const std::string_view word = line.substr(bad).substr(0, 20);
      throw data_error(where, "'", word.substr(0, word.find_first_of(kBlanks)), "' is not 0 or 1");
    }
    if (values.size() - before != size_t{kWidth})
      throw data_error(where, values.size() - before, " numbers, ", kWidth, " (28 x 28) expected");
  }
  return values;
}

}  // namespace

IdxArray read_idx_images(const std::filesystem::path& path) { return read_idx(path, 3); }
IdxArray read_idx_labels(const std::filesystem::path& path) { return read_idx(path, 1); }

IdxArray read_amat(const std::filesystem::path& path) {
  const std::string text = read_unpacked(path);
  const std::string values = parse(text, path.string());
  const int64_t count = static_cast<int64_t>(values.size()) / kWidth;
  return {tensor_of_bytes(values, {count, kWidth}, at::kByte), md5(text)};
}

}  // namespace crais
