#include "util/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <system_error>
#include <utility>

#include "util/error.h"
#include "util/memory.h"

namespace crais {
namespace fs = std::filesystem;

namespace {

/// Sixteen unpredictable hexadecimal digits.
std::string random_word() {
  std::random_device random;
  char text[17];
  std::snprintf(text, sizeof text, "%08x%08x", random(), random());
  return text;
}

/// A new file in `folder`. The destructor closes and removes the file unless its content was
/// committed. Creation follows no symbolic link and never overwrites an existing file.
class TemporaryFile {
 public:
  TemporaryFile(const fs::path& folder, const std::string& name) : folder_(folder) {
    do {
      path_ = folder / ("." + name.substr(0, kMaxName) + "." + random_word() + ".tmp");
      descriptor_ =
          ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    } while (descriptor_ < 0 && errno == EEXIST);
    if (descriptor_ < 0)
      throw Error(ErrorKind::kCannotCreate, folder.string(),
                  ": cannot write here: ", std::strerror(errno));
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

  /// Moves the content to `target` and makes it survive a power cut. If `replaces` is false and
  /// `target` exists, commit changes nothing and returns false.
  bool commit(const fs::path& target, bool replaces = true) {
    const int descriptor = std::exchange(descriptor_, -1);
    if (::close(descriptor) != 0) fail();
    if (!replaces) {
      if (::link(path_.c_str(), target.c_str()) == 0) {
        sync_folder();
        return true;
      }
      std::error_code ignored;
      if (errno == EEXIST || fs::exists(target, ignored)) return false;
    }
    if (::rename(path_.c_str(), target.c_str()) != 0)
      throw Error(ErrorKind::kCannotCreate, target.string(),
                  ": cannot be written: ", std::strerror(errno));
    committed_ = true;
    sync_folder();
    return true;
  }

 private:
  [[noreturn]] void fail() const {
    throw Error(ErrorKind::kIo, path_.string(), ": cannot write: ", std::strerror(errno));
  }

  /// Best effort: some file systems cannot sync a folder.
  void sync_folder() const {
    const int folder = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return;
    ::fsync(folder);
    ::close(folder);
  }

  static constexpr size_t kMaxName = 200;  // file systems allow 255 bytes

  fs::path folder_;
  fs::path path_;
  int descriptor_ = -1;
  bool committed_ = false;
};

}  // namespace

std::string read_file(const fs::path& path) {
  const std::string name = path.string();
  struct stat status {};
  const auto require = [&](bool is_done) {
    if (!is_done)
      throw no_input_error(name, ": ", (errno == ENOENT ? "no such file" : std::strerror(errno)));
  };
  const auto require_file = [&] {
    if (!S_ISREG(status.st_mode))
      throw no_input_error(name,
                           (S_ISDIR(status.st_mode) ? ": is a folder" : ": is a device or a pipe"),
                           ", a file was expected");
  };
  require(::stat(path.c_str(), &status) == 0);
  require_file();  // before the open: opening a device may have side effects
  // O_NONBLOCK: if a pipe has replaced the file, open must not wait for a writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  require(descriptor >= 0);
  const std::shared_ptr<void> closer(nullptr, [=](void*) { ::close(descriptor); });
  require(::fstat(descriptor, &status) == 0);
  require_file();
  std::string content;
  try {
    if (status.st_size > physical_memory()) throw std::bad_alloc();
    // Ask for one byte more than the reported size: some unreadable files report a size of 0.
    content.resize(static_cast<size_t>(status.st_size) + 1);
  } catch (const std::bad_alloc&) {
    throw no_input_error(name, ": its ", size_text(status.st_size), " do not fit into memory");
  }
  size_t done = 0;
  while (done < content.size()) {
    const ssize_t count = ::read(descriptor, content.data() + done, content.size() - done);
    if (count < 0 && errno == EINTR) continue;
    require(count >= 0);
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  content.resize(std::min(done, static_cast<size_t>(status.st_size)));
  return content;
}

void write_file_atomic(const fs::path& path, std::string_view content) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  TemporaryFile file(folder, path.filename().string());
  file.write(content);
  file.commit(path);
}

bool write_file_new(const fs::path& path, std::string_view content) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  TemporaryFile file(folder, path.filename().string());
  file.write(content);
  return file.commit(path, /*replaces=*/false);
}

std::shared_ptr<const void> lock_file(const fs::path& path, bool is_shared) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (descriptor < 0)
    throw Error(ErrorKind::kCannotCreate, path.string(),
                ": cannot be opened: ", std::strerror(errno));
  const std::shared_ptr<const int> lock(new int(descriptor), [](const int* held) {
    ::close(*held);
    delete held;
  });
  while (::flock(descriptor, (is_shared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0)
    if (errno != EINTR) return errno == EWOULDBLOCK ? nullptr : lock;
  return lock;
}

void make_output_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  std::error_code ignored;
  if (error || !fs::is_directory(folder, ignored))
    throw Error(ErrorKind::kCannotCreate, folder.string(), ": cannot make this folder: ",
                (error ? error.message() : std::string("a file of that name is in the way")));
  const TemporaryFile probe(folder, "probe");
}

}  // namespace crais
