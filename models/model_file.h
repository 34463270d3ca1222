/// @file
/// A file that may hold a model. The file is read once, and its content decides which reader
/// follows.
#pragma once

#include <filesystem>
#include <string>

namespace crais {

struct ModelFile {
  enum class Kind {
    kPackage,  // of crais.export: native code, or weights, with a description
    kScript,   // TorchScript
    kWeights   // any other file, which must hold tensors: a checkpoint or a state_dict
  };

  /// Runs nothing in the file. Throws Error: kNoInput if the file is missing, kData if it is a
  /// damaged zip archive.
  ModelFile(std::filesystem::path file);  // NOLINT(google-explicit-constructor): names a file
  ModelFile(const std::string& file) : ModelFile(std::filesystem::path(file)) {}  // NOLINT
  ModelFile(const char* file) : ModelFile(std::filesystem::path(file)) {}         // NOLINT

  std::filesystem::path path;
  std::string bytes;
  Kind kind = Kind::kWeights;

  /// The name of the file in errors.
  std::string where() const { return path.string(); }
  std::string sha256() const;
};

}  // namespace crais
