// What every fuzz target shares: an input, the files it stands for, and the verdict.
//
// A target is one function:
//
//   void crais::fuzz::read(std::string_view input) { parse_npy(input, "input"); }
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace crais::fuzz {

/// Reads an input as users' files are read; each target defines it.
///
/// A file that is fine comes back, and one that is not throws Error: kData, kNoInput or kArgument,
/// in one line. Whatever else happens is a finding: another exception, a fault that a sanitizer
/// sees, 5 s without an answer, 2 GiB of memory.
void read(std::string_view input);

/// Runs one of several readers of an input, with the same verdict: those that follow still run.
void attempt(const std::function<void()>& reader);

/// A folder in memory, empty at the beginning of every input.
const std::filesystem::path& folder();
/// The path of a file in the folder that holds these bytes.
std::string file(std::string_view bytes, const std::string& name = "input");

/// A file within an input that stands for several. "=== NAME" is a line before its bytes.
struct Part {
  std::string name;
  std::string bytes;
};
std::vector<Part> parts(std::string_view input);

/// A safetensors file from three lines: its metadata under `key`, the rest of its header, its data.
/// The fuzzer alters each of these without learning how to write a header's length, or JSON in
/// JSON.
std::string safetensors(std::string_view input, const std::string& key);
/// A zip archive of the parts, with checksums that are right.
std::string archive(std::string_view input);

}  // namespace crais::fuzz
