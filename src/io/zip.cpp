#include "io/zip.h"

#include <zip.h>

#include "io/gzip.h"
#include "io/json.h"
#include "util/error.h"

namespace crais {
namespace {

/// libzip's words for what went wrong, released on every way out.
class ZipError {
 public:
  ZipError() { zip_error_init(&error_); }
  ZipError(const ZipError&) = delete;
  ZipError& operator=(const ZipError&) = delete;
  ~ZipError() { zip_error_fini(&error_); }

  zip_error_t* get() { return &error_; }
  std::string text() { return zip_error_strerror(&error_); }

 private:
  zip_error_t error_{};
};

zip* open_archive(std::string_view bytes, const std::string& where) {
  if (!is_zip(bytes)) throw data_error(where + ": not a zip archive");  // libzip opens nothing, too
  ZipError error;
  zip_source_t* const source =
      zip_source_buffer_create(bytes.data(), bytes.size(), /*freep=*/0, error.get());
  if (!source) throw internal_error("libzip cannot start: " + error.text());
  zip* const archive = zip_open_from_source(source, ZIP_RDONLY, error.get());
  if (!archive) {
    zip_source_free(source);
    throw data_error(where + ": a damaged or truncated zip archive (" + error.text() + ")");
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
  for (uint64_t i = 0; i < count; ++i) {
    const char* const name = zip_get_name(archive_.get(), i, ZIP_FL_ENC_RAW);
    if (!name) throw data_error(where_ + ": entry " + std::to_string(i) + " has no name");
    names_.emplace_back(name);
    if (!index_.emplace(name, i).second)
      throw data_error(where_ + ": two entries are called " + quoted(name));
  }
}

std::string ZipArchive::place(const std::string& name) const {
  return where_ + ": entry " + quoted(name);
}

uint64_t ZipArchive::index_of(const std::string& name) const {
  const auto found = index_.find(name);
  if (found == index_.end()) throw data_error(place(name) + " is not in the archive");
  return found->second;
}

uint64_t ZipArchive::size(const std::string& name) const {
  zip_stat_t description{};
  if (zip_stat_index(archive_.get(), index_of(name), 0, &description) != 0 ||
      !(description.valid & ZIP_STAT_SIZE))
    throw data_error(place(name) + " has no size");
  return description.size;
}

std::string ZipArchive::read(const std::string& name) {
  const uint64_t size = this->size(name);
  if (size > room_)
    throw data_error(place(name) + " unpacks to " + std::to_string(size) +
                     " bytes; an archive may unpack to 100 times its size (or 64 MiB), of which " +
                     std::to_string(room_) + " bytes are left");
  room_ -= size;
  const std::unique_ptr<zip_file_t, CloseEntry> file(
      zip_fopen_index(archive_.get(), index_of(name), 0));
  if (!file) throw data_error(place(name) + ": " + zip_strerror(archive_.get()));
  std::string content(size, '\0');
  uint64_t done = 0;
  while (done < size) {
    const zip_int64_t count = zip_fread(file.get(), content.data() + done, size - done);
    if (count <= 0)
      throw data_error(place(name) + ": damaged or truncated: " + zip_file_strerror(file.get()));
    done += static_cast<uint64_t>(count);
  }
  char beyond = 0;  // libzip compares the checksum when it comes to the end
  if (zip_fread(file.get(), &beyond, 1) != 0)
    throw data_error(place(name) + ": damaged: its content is not what its size and checksum say");
  return content;
}

}  // namespace crais
