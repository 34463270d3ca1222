// The safetensors format: named tensors and string pairs in one file, which Python reads too.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace crais {

struct SafeTensors {
  std::vector<std::pair<std::string, at::Tensor>> tensors;  // on the CPU
  std::map<std::string, std::string> metadata;

  /// The tensor of that name, or null.
  const at::Tensor* find(const std::string& name) const;
};

/// True if the bytes begin like a safetensors file: a length, then a JSON object.
bool is_safetensors(std::string_view bytes);

/// The tensors in `bytes`, each a copy: floats of 32 and 64 bits, integers of 64 bits, bytes.
///
/// The whole header is checked before any of it is used: lengths, types, shapes, names, and
/// offsets, which must tile the data without overlaps and holes. Throws Error kData, one line that
/// begins with `where`.
SafeTensors parse_safetensors(std::string_view bytes, const std::string& where);
std::string serialise_safetensors(const SafeTensors& content);

/// Reads or writes a file. Reading throws Error kNoInput if the file is missing. Writing is atomic.
SafeTensors read_safetensors(const std::filesystem::path& path);
void write_safetensors(const std::filesystem::path& path, const SafeTensors& content);

}  // namespace crais
