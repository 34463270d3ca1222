// Files: whole reads, atomic writes.
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

namespace crais {

/// The whole file, as long as it was when it was opened. Throws Error: kNoInput if it is missing,
/// unreadable, larger than the memory, or a folder, a device, a pipe: those may have no end.
std::string read_file(const std::filesystem::path& path);

/// Writes under a temporary name beside `path`, then renames: readers see the old content or the
/// new. Throws Error: kCannotCreate if the folder refuses, kIo if the disk is full; leaves nothing
/// behind.
void write_file_atomic(const std::filesystem::path& path, std::string_view content);

/// The same where there is no `path` yet; false, and what is there stays, where there is one. On a
/// file system without hard links what was made at the same moment may be replaced.
bool write_file_new(const std::filesystem::path& path, std::string_view content);

/// Makes the folder (and its parents) and proves that it takes files.
/// Throws Error kCannotCreate if it does not.
void make_output_folder(const std::filesystem::path& folder);

/// Sixteen hexadecimal digits that nobody can foresee.
std::string random_word();

}  // namespace crais
