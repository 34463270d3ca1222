#include "util/files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace crais {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;

/// Stands in for a full disk: no file may grow beyond `bytes`.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST(Files, ANewFileReplacesNothing) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a";
  EXPECT_TRUE(write_file_new(path, "first"));
  EXPECT_FALSE(write_file_new(path, "second"));
  EXPECT_EQ(read_file(path), "first");
  EXPECT_EQ(folder.num_entries(), 1u);  // and nothing temporary is left
}

TEST(Files, ALockEndsWithItsHolder) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "lock";
  {
    const auto one = lock_file(path, /*is_shared=*/true), other = lock_file(path, true);
    EXPECT_TRUE(one && other);
    EXPECT_FALSE(lock_file(path, false));
  }
  const auto alone = lock_file(path, false);
  EXPECT_TRUE(alone);
  EXPECT_FALSE(lock_file(path, false));
  EXPECT_FALSE(lock_file(path, true));
  expect_error(ErrorKind::kCannotCreate, {"nowhere"},
               [&] { lock_file(folder.path() / "nowhere/lock", false); });
}

TEST(Files, ReadsBackWhatItWrote) {
  const TemporaryFolder folder;
  const std::string content("a\0b\r\n\xff", 6);
  write_file_atomic(folder.path() / "x", content);
  EXPECT_EQ(read_file(folder.path() / "x"), content);
  write_file_atomic(folder.path() / "x", "");
  EXPECT_EQ(read_file(folder.path() / "x"), "");
  EXPECT_EQ(folder.num_entries(), 1U);
}

TEST(Files, NamesWhatCannotBeRead) {
  const TemporaryFolder folder;
  const std::string missing = (folder.path() / "missing").string();
  expect_error(ErrorKind::kNoInput, {missing, "no such file"}, [&] { read_file(missing); });
  expect_error(ErrorKind::kNoInput, {folder.path().string(), "folder"},
               [&] { read_file(folder.path()); });
  // Opens, but every read fails.
  if (fs::exists("/proc/self/mem"))
    expect_error(ErrorKind::kNoInput, {"/proc/self/mem"}, [] { read_file("/proc/self/mem"); });
}

TEST(Files, NothingWithoutAnEndIsRead) {
  const TemporaryFolder folder;
  const std::string pipe = (folder.path() / "pipe").string();  // that nobody ever writes to
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_error(ErrorKind::kNoInput, {pipe, "a device or a pipe"}, [&] { read_file(pipe); });
  expect_error(ErrorKind::kNoInput, {"/dev/zero", "a device or a pipe"},
               [] { read_file("/dev/zero"); });
  const std::string hole = folder.file("hole", "");
  fs::resize_file(hole, uintmax_t{1} << 42);
  expect_error(ErrorKind::kNoInput, {hole, "4.0 TiB do not fit into memory"},
               [&] { read_file(hole); });
}

TEST(Files, AFullDiskLosesNothing) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "x";
  write_file_atomic(path, "old");
  {
    const FileSizeLimit limit(1000);
    expect_error(ErrorKind::kIo, {"x", "cannot write"},
                 [&] { write_file_atomic(path, std::string(5000, 'n')); });
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(folder.num_entries(), 1U);
}

TEST(Files, AFailedRenameLeavesNothingBehind) {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() / "taken" / "inside");
  expect_error(ErrorKind::kCannotCreate, {"taken", "Is a directory"},
               [&] { write_file_atomic(folder.path() / "taken", "content"); });
  EXPECT_EQ(folder.num_entries(), 1U);
}

TEST(Files, RefusesFoldersThatRefuse) {
  const TemporaryFolder folder;
  const fs::path missing = folder.path() / "missing" / "x";
  expect_error(ErrorKind::kCannotCreate, {(folder.path() / "missing").string()},
               [&] { write_file_atomic(missing, "content"); });
  expect_error(ErrorKind::kCannotCreate, {"/proc"}, [] { write_file_atomic("/proc/crais", "x"); });
  expect_error(ErrorKind::kCannotCreate, {"/proc/crais"},
               [] { make_output_folder("/proc/crais"); });
  const std::string file = folder.file("file", "");
  expect_error(ErrorKind::kCannotCreate, {file}, [&] { make_output_folder(file); });
  expect_error(ErrorKind::kCannotCreate, {file}, [&] { make_output_folder(file + "/below"); });
}

TEST(Files, NamesThatNoFileSystemTakesAreNoFaultOfOurs) {
  const TemporaryFolder folder;
  const fs::path endless = folder.path() / std::string(300, 'n'), loop = folder.path() / "loop";
  fs::create_symlink("loop", loop);
  for (const fs::path& path : {endless, loop}) {
    const std::string reason = path == loop ? "symbolic links" : "too long";
    expect_error(ErrorKind::kNoInput, {path.string(), reason}, [&] { read_file(path); });
    expect_error(ErrorKind::kCannotCreate, {path.string()}, [&] { make_output_folder(path); });
  }
  expect_error(ErrorKind::kCannotCreate, {endless.string(), "too long"},
               [&] { write_file_atomic(endless, "content"); });
  write_file_atomic(folder.path() / std::string(255, 'n'), "content");  // the longest there is
}

TEST(Files, WritesThroughNoLink) {
  const TemporaryFolder folder;
  const std::string victim = folder.file("victim", "theirs");
  fs::create_symlink(victim, folder.path() / "x");
  write_file_atomic(folder.path() / "x", "ours");
  EXPECT_EQ(read_file(victim), "theirs");
  EXPECT_EQ(read_file(folder.path() / "x"), "ours");
}

TEST(Files, RefusesReadOnlyFolders) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write to a read-only folder";
  const TemporaryFolder folder;
  ::chmod(folder.path().c_str(), 0500);
  expect_error(ErrorKind::kCannotCreate, {folder.path().string()},
               [&] { write_file_atomic(folder.path() / "x", "content"); });
  expect_error(ErrorKind::kCannotCreate, {folder.path().string()},
               [&] { make_output_folder(folder.path()); });
  ::chmod(folder.path().c_str(), 0700);
}

}  // namespace
}  // namespace crais
