#include "io/idx.h"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string_view>
#include <vector>

#include "core/spec.h"
#include "io/gzip.h"
#include "util/error.h"
#include "util/files.h"

namespace crais {
namespace {

struct Header {
  std::vector<int64_t> shape;
  uint64_t file_size = 0;  // header and values
};

uint8_t byte_at(std::string_view bytes, size_t i) { return static_cast<uint8_t>(bytes[i]); }

std::string hex(std::string_view bytes) {
  std::string text;
  char two[4];
  for (const char byte : bytes) {
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned>(static_cast<uint8_t>(byte)));
    text += two;
  }
  return text;
}

int64_t big_endian(std::string_view bytes, size_t i) {
  return int64_t{byte_at(bytes, i)} << 24 | int64_t{byte_at(bytes, i + 1)} << 16 |
         int64_t{byte_at(bytes, i + 2)} << 8 | int64_t{byte_at(bytes, i + 3)};
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::vector<std::string> words;
  words.reserve(shape.size());
  for (const int64_t extent : shape) words.push_back(std::to_string(extent));
  return join(words, " x ");
}

Header parse_header(std::string_view start, size_t dimensions, const std::string& name) {
  const std::string expected =
      dimensions == 3 ? "00000803 (images of unsigned bytes)" : "00000801 (labels)";
  const size_t header_size = 4 + 4 * dimensions;
  if (start.size() < 4)
    throw data_error(name + ": truncated: " + std::to_string(start.size()) +
                     " bytes are too few for an IDX file");
  if (byte_at(start, 0) != 0 || byte_at(start, 1) != 0)
    throw data_error(name + ": not an IDX file: it begins with " + hex(start.substr(0, 4)) +
                     ", expected " + expected);
  if (byte_at(start, 2) != 0x08)
    throw data_error(name + ": IDX data of type 0x" + hex(start.substr(2, 1)) +
                     "; unsigned bytes (type 0x08) were expected");
  if (byte_at(start, 3) != dimensions)
    throw data_error(name + ": IDX data of " + std::to_string(byte_at(start, 3)) +
                     " dimensions (magic " + hex(start.substr(0, 4)) + "), expected " + expected);
  if (start.size() < header_size)
    throw data_error(name + ": truncated within its header: " + std::to_string(start.size()) +
                     " of " + std::to_string(header_size) + " bytes");
  Header header;
  header.file_size = header_size;
  uint64_t count = 1;
  for (size_t d = 0; d < dimensions; ++d) {
    const int64_t extent = big_endian(start, 4 + 4 * d);
    header.shape.push_back(extent);
    if (extent == 0)
      throw data_error(name + ": empty: its header says " + (d == 0 ? "0 items" : "0 pixels"));
    if (count > static_cast<uint64_t>(std::numeric_limits<int64_t>::max() / 2 / extent))
      throw data_error(name + ": impossible size in its header: over 2^62 values");
    count *= static_cast<uint64_t>(extent);
  }
  header.file_size += count;
  return header;
}

IdxArray read_idx(const std::filesystem::path& path, size_t dimensions) {
  const std::string name = path.string();
  const size_t header_size = 4 + 4 * dimensions;
  std::string content = read_file(path);
  const bool compressed = is_gzip(content);
  const Header header =
      parse_header(compressed ? gunzip(content, name, header_size) : content.substr(0, header_size),
                   dimensions, name);
  // One byte more than needed shows junk without unpacking all of it.
  if (compressed) content = gunzip(content, name, header.file_size + 1);
  if (content.size() < header.file_size)
    throw data_error(name + ": truncated: its header says " + shape_text(header.shape) +
                     ", which is " + std::to_string(header.file_size) + " bytes, but " +
                     std::to_string(content.size()) + " are there");
  if (content.size() > header.file_size)
    throw data_error(name + ": junk after its " + shape_text(header.shape) +
                     " values: " + std::to_string(header.file_size) + " bytes were expected");
  IdxArray array{at::empty(header.shape, at::kByte), md5(content)};
  std::memcpy(array.values.data_ptr<uint8_t>(), content.data() + header_size,
              content.size() - header_size);
  return array;
}

}  // namespace

IdxArray read_idx_images(const std::filesystem::path& path) { return read_idx(path, 3); }
IdxArray read_idx_labels(const std::filesystem::path& path) { return read_idx(path, 1); }

}  // namespace crais
