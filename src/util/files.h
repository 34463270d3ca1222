// Files: whole reads, atomic writes.
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>

namespace crais {

/// Reads the whole file, as long as it was when it was opened. Throws Error kNoInput if the file is
/// missing, unreadable or larger than the memory, or if it is a folder, a device or a pipe (a
/// device or a pipe may have no end).
std::string read_file(const std::filesystem::path& path);

/// Writes under a temporary name beside `path`, then renames: readers see the old content or the
/// new content. Throws Error kCannotCreate if the folder refuses the file, kIo if the disk is full.
/// A failed write leaves nothing behind.
void write_file_atomic(const std::filesystem::path& path, std::string_view content);

/// Writes `path` atomically if it does not exist, and returns true. If `path` exists, returns false
/// and leaves it alone. On a file system without hard links, a file that another process makes at
/// the same moment may be replaced.
bool write_file_new(const std::filesystem::path& path, std::string_view content);

/// Locks the file `path`, made empty if there is none, until the result is destroyed. A shared lock
/// excludes exclusive ones, an exclusive lock all others. Returns null if it is excluded itself. A
/// process that ends has no locks. A file system without locks excludes nobody. Throws Error
/// kCannotCreate if the file cannot be opened.
std::shared_ptr<const void> lock_file(const std::filesystem::path& path, bool is_shared);

/// Makes the folder and its parents, and checks that files can be written there. Throws Error
/// kCannotCreate if not.
void make_output_folder(const std::filesystem::path& folder);

}  // namespace crais
