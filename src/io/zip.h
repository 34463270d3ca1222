// Compressed files: gzip, and zip archives in memory as numpy.savez and PyTorch write them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct zip;  // of libzip

namespace crais {

/// True if the bytes begin like a zip archive with entries.
bool is_zip(std::string_view bytes);

/// The entries of an untrusted archive.
///
/// All reads of one archive together may return at most 100 times its size (64 MiB are always
/// allowed): an archive that unpacks to more is an attack on the memory.
class ZipArchive {
 public:
  /// The caller keeps the bytes. Throws Error kData, one line that begins with `where`, if they are
  /// not a zip archive, or if the archive is damaged or names an entry twice.
  ZipArchive(std::string_view bytes, std::string where);

  /// The names of the entries, in the order of the archive.
  const std::vector<std::string>& names() const { return names_; }

  /// The whole entry, with its checksum verified. Throws Error kData if the entry is absent,
  /// encrypted, damaged or too large.
  std::string read(const std::string& name);

 private:
  struct Close {
    void operator()(zip* archive) const;
  };

  std::string where_;
  uint64_t room_;  // bytes that may still be read
  std::unique_ptr<zip, Close> archive_;
  std::vector<std::string> names_;
};

/// True if the bytes begin like a gzip file. The file's name does not count: browsers may
/// decompress a download and keep its name.
bool is_gzip(std::string_view bytes);

/// The most that a compressed file of that size may unpack to: 100 times as much, but at least 64
/// MiB. A file that unpacks to more is an attack on the memory; images and arrays stay far below.
uint64_t most_unpacked(uint64_t packed);

/// The unpacked `bytes`, with checksums verified. `name` is used in messages. Throws Error kData if
/// the data are truncated, damaged or followed by other data, or if they unpack to more than
/// `most_unpacked`.
std::string gunzip(std::string_view bytes, const std::string& name);

/// The content of a file, unpacked if it is compressed. Throws the errors of read_file
/// (util/files.h) and gunzip.
std::string read_unpacked(const std::filesystem::path& path);

}  // namespace crais
