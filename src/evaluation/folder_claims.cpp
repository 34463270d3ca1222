// Claims by files that are made only if they are not there.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>
#include <utility>

#include "evaluation/work_queue.h"
#include "util/error.h"
#include "util/files.h"

namespace crais {
namespace fs = std::filesystem;

namespace {

constexpr size_t kLongest = 64;  // bytes that any of these files has

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags)
      : value_(::open(path.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (is_open()) ::close(value_);
  }

  bool is_open() const { return value_ >= 0; }
  /// Whatever was there of the same length is replaced without asking for room on the disk.
  bool write(const std::string& text) const {
    return ::pwrite(value_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  }
  std::string read() const {
    std::string text(kLongest, '\0');
    struct stat status {};
    if (::fstat(value_, &status) != 0 || !S_ISREG(status.st_mode)) return "";
    text.resize(static_cast<size_t>(std::max<ssize_t>(0, ::read(value_, text.data(), kLongest))));
    return text;
  }

 private:
  int value_;
};

/// "" where nothing can be read: nobody has written it yet, or it is no file of ours.
std::string content_of(const std::string& path) {
  const Descriptor file(path, O_RDONLY);
  return file.is_open() ? file.read() : "";
}

/// The number of "000012.3"; nothing of another name.
std::optional<int64_t> chunk_of(const std::string& name) {
  int64_t chunk = 0;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data(), end, chunk);
  if (error != std::errc() || chunk < 0 || stop == end || *stop != '.') return {};
  return chunk;
}

bool is_ours(const std::string& name) {
  const size_t point = name.rfind('.');
  const std::string stem = name.substr(0, point);
  return name.rfind("worker-", 0) == 0 ||
         (point != std::string::npos && (stem == "plan" || stem == "report" || chunk_of(name)));
}

}  // namespace

FolderClaims::FolderClaims(const std::string& folder)
    : folder_((fs::path(folder) / "claims").string()) {
  std::error_code ignored;
  if (fs::is_symlink(folder_, ignored))
    throw argument_error(folder_ + ": is a link, and claims are not written through one");
  make_output_folder(folder_);
}

std::string FolderClaims::path_of(const std::string& name) const {
  return (fs::path(folder_) / name).string();
}

std::string FolderClaims::take(const std::string& name, const std::string& worker) {
  const std::string path = path_of(name);
  const Descriptor made(path, O_WRONLY | O_CREAT | O_EXCL);
  if (made.is_open()) {
    if (made.write(worker)) return worker;
    throw Error(ErrorKind::kIo, path + ": cannot write: " + std::strerror(errno));
  }
  if (errno != EEXIST)
    throw Error(ErrorKind::kCannotCreate, path + ": cannot be made: " + std::strerror(errno));
  {
    const std::lock_guard lock(mutex_);
    must_look_ = true;  // others have taken more since
  }
  return content_of(path);
}

std::optional<int64_t> FolderClaims::draw(int64_t count) {
  static thread_local std::mt19937_64 random(std::random_device{}());
  const std::lock_guard lock(mutex_);
  if (std::exchange(must_look_, false)) {
    std::vector<bool> taken(static_cast<size_t>(count));
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder_, error))
      if (const auto chunk = chunk_of(entry.path().filename().string()); chunk && *chunk < count)
        taken[static_cast<size_t>(*chunk)] = true;
    free_.clear();
    for (int64_t chunk = 0; chunk < count; ++chunk)
      if (!taken[static_cast<size_t>(chunk)]) free_.push_back(chunk);
    // Each worker in an order of its own: two seldom want the same.
    std::shuffle(free_.begin(), free_.end(), random);
  }
  if (free_.empty()) return {};
  const int64_t chunk = free_.back();
  free_.pop_back();
  return chunk;
}

void FolderClaims::beat(const std::string& worker) {
  int64_t count = 0;
  {
    const std::lock_guard lock(mutex_);
    count = ++beats_[worker];
  }
  char text[24];
  std::snprintf(text, sizeof text, "%020lld", static_cast<long long>(count));
  // Made once: what has been removed since belonged to a run that is complete.
  write_beat(worker, text, count == 1 ? O_CREAT | O_EXCL : 0);
}

void FolderClaims::leave(const std::string& worker) { write_beat(worker, kGone, 0); }

void FolderClaims::write_beat(const std::string& worker, const std::string& text, int flags) {
  const std::string path = path_of("worker-" + worker);
  const Descriptor file(path, O_WRONLY | flags);
  if (!file.is_open() || !file.write(text))
    throw Error(ErrorKind::kIo, path + ": cannot write: " + std::strerror(errno));
}

std::string FolderClaims::last_beat(const std::string& worker) {
  if (!is_worker(worker)) return "";  // nobody's name: it will never show a sign of life
  const std::string text = content_of(path_of("worker-" + worker));
  return text.rfind(kGone, 0) == 0 ? kGone : text;
}

void FolderClaims::remove(const std::string& claims) {
  std::error_code ignored;
  if (fs::is_symlink(claims, ignored)) return;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(claims, ignored))
    if (is_ours(entry.path().filename().string())) found.push_back(entry.path());
  for (const auto& path : found) fs::remove(path, ignored);
  fs::remove(claims, ignored);  // if it is empty
}

}  // namespace crais
