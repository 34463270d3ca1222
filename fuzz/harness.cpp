#include "harness.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/zip_writer.h"
#include "util/error.h"
#include "util/parallel.h"

namespace crais::fuzz {
namespace {

namespace fs = std::filesystem;

/// libFuzzer keeps the input of a process that aborts.
[[noreturn]] void finding(const std::string& what) {
  std::fprintf(stderr, "FINDING: %s\n", what.c_str());
  std::abort();
}

void check(const Error& error) {
  const std::string message = error.what();
  const bool expected = error.kind() == ErrorKind::kData || error.kind() == ErrorKind::kArgument ||
                        error.kind() == ErrorKind::kNoInput;
  if (!expected) finding("an error of a kind that no input deserves: " + message);
  if (message.empty()) finding("an error without a word");
}

}  // namespace

void attempt(const std::function<void()>& reader) {
  // Whatever else is thrown ends the process where it is thrown, with the stack that led to it.
  try {
    reader();
  } catch (const Error& error) {
    check(error);
  }
}

const fs::path& folder() {
  static const fs::path kPath = [] {
    fs::path made = fs::temp_directory_path() / ("crais-fuzz." + std::to_string(::getpid()));
    fs::create_directories(made);
    return made;
  }();
  return kPath;
}

std::string file(std::string_view bytes, const std::string& name) {
  const fs::path path = folder() / name;
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path.string();
}

std::vector<Part> parts(std::string_view input) {
  constexpr std::string_view kMark = "=== ";
  std::vector<Part> found;
  while (input.substr(0, kMark.size()) == kMark) {
    input.remove_prefix(kMark.size());
    const size_t line = std::min(input.find('\n'), input.size());
    const size_t end = std::min(input.find("\n=== ", line), input.size());
    const size_t begin = std::min(line + 1, end);
    found.push_back(
        {std::string(input.substr(0, line)), std::string(input.substr(begin, end - begin))});
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  return found;
}

std::string safetensors(std::string_view input, const std::string& key) {
  const size_t first = std::min(input.find('\n'), input.size());
  const size_t second = std::min(input.find('\n', first + 1), input.size());
  const std::string description =
      nlohmann::json(std::string(input.substr(0, first)))
          .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string header = "{\"__metadata__\":{\"" + key + "\":" + description + "}";
  if (second > first + 1) header += "," + std::string(input.substr(first + 1, second - first - 1));
  header += "}";
  const std::string_view data = input.substr(std::min(second + 1, input.size()));
  return testing::little_endian(header.size(), 8) + header + std::string(data);
}

std::string archive(std::string_view input) {
  std::vector<testing::ZipEntry> entries;
  for (Part& part : parts(input)) entries.push_back({std::move(part.name), std::move(part.bytes)});
  return testing::zip_of(entries);
}

}  // namespace crais::fuzz

// NOLINTBEGIN(readability-identifier-naming): libFuzzer's names
extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  crais::use_one_thread_per_operation();
  std::atexit([] {
    std::error_code ignored;
    std::filesystem::remove_all(crais::fuzz::folder(), ignored);
  });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using crais::fuzz::folder;
  crais::fuzz::attempt([&] { crais::fuzz::read({reinterpret_cast<const char*>(data), size}); });
  for (const auto& entry : std::filesystem::directory_iterator(folder()))
    std::filesystem::remove_all(entry);
  return 0;
}
// NOLINTEND(readability-identifier-naming)
