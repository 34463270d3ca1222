/// @file
/// A file that may hold a model. The file is read once, and its content decides which reader
/// follows.
#pragma once

#include <filesystem>
#include <string>

namespace crais {

struct ModelFile {
  enum class Kind {
    kCheckpoint,  // of train-vae, or another safetensors file: numbers alone
    kWeights,     // of crais.export, with a description: numbers alone
    kPackage,     // of crais.export: native code
    kScript       // TorchScript, which is code
  };

  /// Runs nothing in the file. A file with code must have a name that says so: ".pt2" for native
  /// code, ".pt" or ".pth" for TorchScript.
  ///
  /// Throws Error: kNoInput if the file is missing; kData if it is a damaged zip archive, holds no
  /// model, or holds another kind of model than its name says.
  ModelFile(std::filesystem::path file);  // NOLINT(google-explicit-constructor): names a file
  ModelFile(const std::string& file) : ModelFile(std::filesystem::path(file)) {}  // NOLINT
  ModelFile(const char* file) : ModelFile(std::filesystem::path(file)) {}         // NOLINT

  std::filesystem::path path;
  std::string bytes;
  Kind kind;

  /// The name of the file in errors.
  std::string where() const { return path.string(); }
  std::string sha256() const;
};

/// The end of messages about files without a model that crais reads.
inline constexpr const char* kModelInPython =
    "; in Python, crais.evaluate(module, images) takes the module itself, and "
    "crais.export(\"model.pt2\", decoder=module.decode, ...) makes a file of it";

}  // namespace crais
