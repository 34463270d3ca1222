// Files that may be gzip-compressed.
#pragma once

#include <filesystem>
#include <limits>
#include <string>
#include <string_view>

namespace crais {

/// True if the bytes begin as a gzip file does. The name of a file is not asked: browsers like to
/// decompress what they download and to keep its name.
bool is_gzip(std::string_view bytes);

/// The first `limit` bytes of what `bytes` decompress to; all of it, checksums verified, where that
/// is shorter. `name` is for the messages. Throws Error kData if the data are truncated, damaged or
/// followed by something else.
std::string gunzip(std::string_view bytes, const std::string& name,
                   size_t limit = std::numeric_limits<size_t>::max());

}  // namespace crais
