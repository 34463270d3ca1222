#include "io/zip.h"

#include <zip.h>
#include <zlib.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "io/json.h"
#include "util/error.h"
#include "util/files.h"

namespace crais {
namespace {

zip* open_archive(std::string_view bytes, const std::string& where) {
  if (!is_zip(bytes))
    throw data_error(where, ": not a zip archive");  // libzip also opens empty data
  zip_error_t error;
  zip_error_init(&error);
  const std::unique_ptr<zip_error_t, void (*)(zip_error_t*)> owner(&error, zip_error_fini);
  zip_source_t* const source =
      zip_source_buffer_create(bytes.data(), bytes.size(), /*freep=*/0, &error);
  if (!source) throw internal_error("libzip cannot start: ", zip_error_strerror(&error));
  zip* const archive = zip_open_from_source(source, ZIP_RDONLY, &error);
  if (!archive) {
    zip_source_free(source);
    throw data_error(where, ": a damaged or truncated zip archive (", zip_error_strerror(&error),
                     ")");
  }
  return archive;
}

struct CloseEntry {
  void operator()(zip_file_t* entry) const { zip_fclose(entry); }
};

}  // namespace

bool is_zip(std::string_view bytes) { return bytes.substr(0, 4) == "PK\x03\x04"; }

void ZipArchive::Close::operator()(zip* archive) const { zip_discard(archive); }

ZipArchive::ZipArchive(std::string_view bytes, std::string where)
    : where_(std::move(where)),
      room_(most_unpacked(bytes.size())),
      archive_(open_archive(bytes, where_)) {
  const auto count = static_cast<uint64_t>(zip_get_num_entries(archive_.get(), 0));
  std::set<std::string> others;
  for (uint64_t i = 0; i < count; ++i) {
    const char* const name = zip_get_name(archive_.get(), i, ZIP_FL_ENC_RAW);
    if (!name) throw data_error(where_, ": entry ", i, " has no name");
    if (!others.insert(name).second)
      throw data_error(where_, ": two entries are called ", quoted(name));
    names_.emplace_back(name);
  }
}

std::string ZipArchive::read(const std::string& name) {
  const std::string place = where_ + ": entry " + quoted(name);
  const auto entry = std::find(names_.begin(), names_.end(), name);
  if (entry == names_.end()) throw data_error(place, " is not in the archive");
  const auto index = static_cast<uint64_t>(entry - names_.begin());
  zip_stat_t description{};
  if (zip_stat_index(archive_.get(), index, 0, &description) != 0 ||
      !(description.valid & ZIP_STAT_SIZE))
    throw data_error(place, " has no size");
  const uint64_t size = description.size;
  if (size > room_)
    throw data_error(place, " unpacks to ", size,
                     " bytes; an archive may unpack to 100 times its size (or 64 MiB), of which ",
                     room_, " bytes are left");
  room_ -= size;
  const std::unique_ptr<zip_file_t, CloseEntry> file(zip_fopen_index(archive_.get(), index, 0));
  if (!file) throw data_error(place, ": ", zip_strerror(archive_.get()));
  std::string content(size, '\0');
  uint64_t done = 0;
  while (done < size) {
    const zip_int64_t count = zip_fread(file.get(), content.data() + done, size - done);
    if (count <= 0)
      throw data_error(place, ": damaged or truncated: ", zip_file_strerror(file.get()));
    done += static_cast<uint64_t>(count);
  }
  char beyond = 0;  // libzip compares the checksum when it reaches the end
  if (zip_fread(file.get(), &beyond, 1) != 0)
    throw data_error(place, ": damaged: its content is not what its size and checksum say");
  return content;
}

bool is_gzip(std::string_view bytes) { return bytes.substr(0, 2) == "\x1f\x8b"; }

uint64_t most_unpacked(uint64_t packed) { return std::max(100 * packed, uint64_t{64} << 20); }

std::string gunzip(std::string_view bytes, const std::string& name) {
  constexpr int kGzipFormat = 16 + MAX_WBITS;
  constexpr size_t kMost = size_t{1} << 30;  // zlib counts in 32 bits
  z_stream stream{};
  if (inflateInit2(&stream, kGzipFormat) != Z_OK) throw internal_error("zlib cannot start");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> owner(&stream, inflateEnd);
  const uint64_t most = most_unpacked(bytes.size());
  std::string content;
  std::vector<char> piece(size_t{1} << 16);
  while (true) {
    const size_t offered = std::min(bytes.size(), kMost);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(offered);
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    const int status = inflate(&stream, Z_NO_FLUSH);
    const size_t produced = piece.size() - stream.avail_out;
    bytes.remove_prefix(offered - stream.avail_in);
    content.append(piece.data(), produced);
    if (content.size() > most)
      throw data_error(name, ": unpacks to over ", most,
                       " bytes, too many for its size; unpack it first to read it all the same");
    if (status == Z_STREAM_END) {
      if (bytes.empty()) return content;
      if (!is_gzip(bytes))
        throw data_error(name, ": ", bytes.size(), " bytes of junk after the compressed data");
      inflateReset(&stream);  // a further member: gzip files may be concatenated
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      throw data_error(name, ": damaged gzip data (", (stream.msg ? stream.msg : "unknown error"),
                       ")");
    } else if (bytes.empty() && produced == 0) {
      throw data_error(name, ": truncated: the compressed data end early; fetch the file again");
    }
  }
}

std::string read_unpacked(const std::filesystem::path& path) {
  std::string content = read_file(path);
  if (is_gzip(content)) content = gunzip(content, path.string());
  return content;
}

}  // namespace crais
