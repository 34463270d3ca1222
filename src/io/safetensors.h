// The safetensors format: named tensors and string pairs in one file that Python opens too.
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

/// True if the bytes begin as such a file does: a length, then an object of JSON.
bool is_safetensors(std::string_view bytes);

/// The tensors in `bytes`, each a copy: floats of 16 (both kinds), 32 and 64 bits, signed integers,
/// bytes and truth values.
///
/// Everything in the header is checked before any of it is used: lengths, types, shapes, offsets
/// (inside the file, in no other tensor, without holes between), names. Throws Error kData, one
/// line that begins with `where`.
SafeTensors parse_safetensors(std::string_view bytes, const std::string& where);
std::string serialise_safetensors(const SafeTensors& content);

/// The same of a file. Reading throws Error kNoInput if it is missing; writing is atomic.
SafeTensors read_safetensors(const std::filesystem::path& path);
void write_safetensors(const std::filesystem::path& path, const SafeTensors& content);

}  // namespace crais
