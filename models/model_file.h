/// @file
/// A file that may hold a model: read once, and what it holds decides who reads on.
#pragma once

#include <filesystem>
#include <string>

namespace crais {

struct ModelFile {
  enum class Kind {
    kPackage,  // of crais.export: native code, or weights with what it says of them
    kScript,   // TorchScript
    kWeights   // anything else, which has to be tensors: a checkpoint or a state_dict
  };

  /// Nothing in the file runs. Throws Error: kNoInput if it is missing, kData if it is a zip
  /// archive that is damaged.
  ModelFile(std::filesystem::path file);  // NOLINT(google-explicit-constructor): names a file
  ModelFile(const std::string& file) : ModelFile(std::filesystem::path(file)) {}  // NOLINT
  ModelFile(const char* file) : ModelFile(std::filesystem::path(file)) {}         // NOLINT

  std::filesystem::path path;
  std::string bytes;
  Kind kind = Kind::kWeights;

  /// How an error names it.
  std::string where() const { return path.string(); }
  std::string sha256() const;
};

}  // namespace crais
