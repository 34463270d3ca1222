// Compressed files: gzip's, and zip archives in memory, as numpy.savez and torch.save write them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct zip;  // libzip's

namespace crais {

/// True if the bytes begin as a zip archive with entries does.
bool is_zip(std::string_view bytes);

/// The entries of an archive that nobody vouches for.
///
/// Everything read adds up, over the archive's life, to at most 100 times the archive's size (64
/// MiB are always allowed): what unpacks to more is made to fill memories.
class ZipArchive {
 public:
  /// The caller keeps the bytes. Throws Error kData, one line that begins with `where`, if they are
  /// no zip archive, or one that is damaged or names an entry twice.
  ZipArchive(std::string_view bytes, std::string where);

  /// In the order of the archive.
  const std::vector<std::string>& names() const { return names_; }
  bool has(const std::string& name) const { return index_.count(name) > 0; }

  /// What an entry says it unpacks to. Throws Error kData if it is absent or does not say.
  uint64_t size(const std::string& name) const;

  /// The whole entry, its checksum verified. Throws Error kData if it is absent, encrypted, damaged
  /// or too large.
  std::string read(const std::string& name);

 private:
  struct Close {
    void operator()(zip* archive) const;
  };
  std::string place(const std::string& name) const;
  uint64_t index_of(const std::string& name) const;

  std::string where_;
  uint64_t room_;  // bytes that may still be read
  std::unique_ptr<zip, Close> archive_;
  std::vector<std::string> names_;
  std::map<std::string, uint64_t> index_;
};

/// True if the bytes begin as a gzip file does. The name of a file is not asked: browsers like to
/// decompress what they download and to keep its name.
bool is_gzip(std::string_view bytes);

/// What a compressed file of that size may unpack to: 100 times as much (64 MiB always). What
/// unpacks to more is made to fill memories; images and arrays are far from it.
uint64_t most_unpacked(uint64_t packed);

/// What `bytes` decompress to, checksums verified. `name` is for the messages. Throws Error kData
/// if the data are truncated, damaged, followed by something else, or unpack to more than
/// `most_unpacked`.
std::string gunzip(std::string_view bytes, const std::string& name);

/// The content of a file, decompressed where it is compressed. Throws as read_file (util/files.h)
/// and gunzip do.
std::string read_unpacked(const std::filesystem::path& path);

}  // namespace crais
