// Files that may be gzip-compressed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>

namespace crais {

/// True if the bytes begin as a gzip file does. The name of a file is not asked: browsers like to
/// decompress what they download and to keep its name.
bool is_gzip(std::string_view bytes);

/// What a compressed file of that size may unpack to: 100 times as much (64 MiB always). What
/// unpacks to more is made to fill memories; images and arrays are far from it.
uint64_t most_unpacked(uint64_t packed);

/// The first `limit` bytes of what `bytes` decompress to; all of it, checksums verified, where that
/// is shorter. `name` is for the messages. Throws Error kData if the data are truncated, damaged,
/// followed by something else, or unpack to more than `most_unpacked`.
std::string gunzip(std::string_view bytes, const std::string& name,
                   size_t limit = std::numeric_limits<size_t>::max());

}  // namespace crais
