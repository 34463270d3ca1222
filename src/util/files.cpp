#include "util/files.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "util/error.h"

namespace crais {
namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) throw no_input_error(path.string() + ": no such file");
  if (fs::is_directory(path, ignored))
    throw no_input_error(path.string() + ": is a folder, a file was expected");
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw no_input_error(path.string() + ": " + std::strerror(errno));
  // Not `<< stream.rdbuf()`: that takes a failed read for the end of the file.
  std::string content, block(size_t{1} << 16, '\0');
  while (stream.read(block.data(), static_cast<std::streamsize>(block.size())) || stream.gcount())
    content.append(block, 0, static_cast<size_t>(stream.gcount()));
  if (stream.bad()) throw no_input_error(path.string() + ": cannot be read");
  return content;
}

namespace {

/// An open file that is closed and removed again unless its content was committed.
class TemporaryFile {
 public:
  explicit TemporaryFile(fs::path path)
      : path_(std::move(path)),
        descriptor_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0)
      throw Error(ErrorKind::kCannotCreate,
                  path_.parent_path().string() + ": cannot write here: " + std::strerror(errno));
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!committed_) ::unlink(path_.c_str());
  }

  void write(std::string_view content) {
    while (!content.empty()) {
      const ssize_t written = ::write(descriptor_, content.data(), content.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail();
      content.remove_prefix(static_cast<size_t>(written));
    }
    if (::fsync(descriptor_) != 0 && errno != EINVAL) fail();
  }

  void commit(const fs::path& target) {
    const int descriptor = std::exchange(descriptor_, -1);
    if (::close(descriptor) != 0 || ::rename(path_.c_str(), target.c_str()) != 0) fail();
    committed_ = true;
  }

 private:
  [[noreturn]] void fail() const {
    throw Error(ErrorKind::kIo, path_.string() + ": cannot write: " + std::strerror(errno));
  }

  fs::path path_;
  int descriptor_;
  bool committed_ = false;
};

std::string digest(const EVP_MD* algorithm, std::string_view bytes) {
  unsigned char value[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), value, &length, algorithm, nullptr) != 1)
    throw Error(ErrorKind::kInternal, "OpenSSL cannot compute a digest");
  static const char* const kHex = "0123456789abcdef";
  std::string text;
  for (unsigned int i = 0; i < length; ++i) {
    text += kHex[value[i] >> 4];
    text += kHex[value[i] & 15];
  }
  return text;
}

}  // namespace

void write_file_atomic(const fs::path& path, std::string_view content) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  TemporaryFile file(folder /
                     ("." + path.filename().string() + "." + std::to_string(::getpid()) + ".tmp"));
  file.write(content);
  file.commit(path);
}

void make_output_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder))
    throw Error(ErrorKind::kCannotCreate,
                folder.string() + ": cannot make this folder: " +
                    (error ? error.message() : std::string("a file of that name is in the way")));
  TemporaryFile probe(folder / (".probe." + std::to_string(::getpid()) + ".tmp"));
}

std::string sha256(std::string_view bytes) { return digest(EVP_sha256(), bytes); }
std::string md5(std::string_view bytes) { return digest(EVP_md5(), bytes); }

}  // namespace crais
