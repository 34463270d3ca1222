// Zip archives made by hand, so that they can also be wrong.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace crais::testing {

struct ZipEntry {
  std::string name;
  std::string content;
  bool compressed = false;
  std::optional<uint32_t> claimed_size = {};  // instead of the true one
};

/// In zlib's format of these window bits; as zip archives have it.
inline std::string deflated(const std::string& bytes, int window_bits = -MAX_WBITS) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
  std::string result(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("deflate");
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

inline std::string little_endian(uint64_t number, size_t count) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) bytes += static_cast<char>(number >> 8 * i & 255);
  return bytes;
}

inline std::string zip_of(const std::vector<ZipEntry>& entries) {
  std::string bytes, directory;
  for (const ZipEntry& entry : entries) {
    const std::string stored = entry.compressed ? deflated(entry.content) : entry.content;
    const uint64_t checksum = crc32(0, reinterpret_cast<const Bytef*>(entry.content.data()),
                                    static_cast<uInt>(entry.content.size()));
    const std::string common =
        little_endian(20, 2) + little_endian(0, 2) + little_endian(entry.compressed ? 8 : 0, 2) +
        little_endian(0, 2) + little_endian(33, 2) + little_endian(checksum, 4) +
        little_endian(stored.size(), 4) +
        little_endian(entry.claimed_size.value_or(static_cast<uint32_t>(entry.content.size())), 4) +
        little_endian(entry.name.size(), 2) + little_endian(0, 2);
    directory += "PK\x01\x02" + little_endian(20, 2) + common + std::string(10, 0) +
                 little_endian(bytes.size(), 4) + entry.name;
    bytes += "PK\x03\x04" + common + entry.name + stored;
  }
  const std::string count = little_endian(entries.size(), 2);
  return bytes + directory + "PK\x05\x06" + little_endian(0, 4) + count + count +
         little_endian(directory.size(), 4) + little_endian(bytes.size(), 4) + little_endian(0, 2);
}

}  // namespace crais::testing
