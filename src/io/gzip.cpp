#include "io/gzip.h"

#include <zlib.h>

#include <algorithm>

#include "util/error.h"

namespace crais {
namespace {

/// zlib's state, released on every way out.
class Inflater {
 public:
  Inflater() {
    constexpr int kGzipFormat = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, kGzipFormat) != Z_OK)
      throw Error(ErrorKind::kInternal, "zlib cannot start");
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  void restart() { inflateReset(&stream_); }
  const char* message() const { return stream_.msg ? stream_.msg : "unknown error"; }

  /// Moves as much as fits from `input` into [output, output + capacity); advances `input`.
  int advance(std::string_view& input, char* output, size_t capacity, size_t& produced) {
    constexpr size_t kMost = size_t{1} << 30;  // zlib counts in 32 bits
    const size_t offered = std::min(input.size(), kMost), room = std::min(capacity, kMost);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
    stream_.avail_in = static_cast<uInt>(offered);
    stream_.next_out = reinterpret_cast<Bytef*>(output);
    stream_.avail_out = static_cast<uInt>(room);
    const int status = inflate(&stream_, Z_NO_FLUSH);
    input.remove_prefix(offered - stream_.avail_in);
    produced = room - stream_.avail_out;
    return status;
  }

 private:
  z_stream stream_{};
};

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.substr(0, 2) == "\x1f\x8b"; }

uint64_t most_unpacked(uint64_t packed) { return std::max(100 * packed, uint64_t{64} << 20); }

std::string gunzip(std::string_view bytes, const std::string& name, size_t limit) {
  Inflater inflater;
  std::string content;
  size_t size = 0;
  const uint64_t most = most_unpacked(bytes.size());
  while (size < limit) {
    if (size == content.size())
      content.resize(std::min({limit, most + 1, std::max(size * 2, bytes.size() * 4 + 64)}));
    size_t produced = 0;
    const int status =
        inflater.advance(bytes, content.data() + size, content.size() - size, produced);
    size += produced;
    if (size > most)
      throw data_error(name + ": unpacks to over " + std::to_string(most) +
                       " bytes, too many for its size; unpack it first to read it all the same");
    if (status == Z_STREAM_END) {
      if (bytes.empty()) break;
      if (!is_gzip(bytes))
        throw data_error(name + ": " + std::to_string(bytes.size()) +
                         " bytes of junk after the compressed data");
      inflater.restart();  // another member: gzip files may be concatenated
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      throw data_error(name + ": damaged gzip data (" + inflater.message() + ")");
    } else if (bytes.empty() && produced == 0) {
      throw data_error(name + ": truncated: the compressed data end early; fetch the file again");
    }
  }
  content.resize(size);
  return content;
}

}  // namespace crais
