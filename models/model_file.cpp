#include "models/model_file.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "io/safetensors.h"
#include "io/zip.h"
#include "util/digest.h"
#include "util/error.h"
#include "util/files.h"

namespace crais {
namespace {

using Kind = ModelFile::Kind;

Kind kind_of(const std::string& bytes, const std::string& where) {
  if (is_safetensors(bytes)) return Kind::kCheckpoint;
  std::vector<std::string> entries;
  if (is_zip(bytes)) entries = ZipArchive(bytes, where).names();
  const auto any = [&](const char* part) {
    return std::any_of(entries.begin(), entries.end(), [&](const std::string& name) {
      return name.find(part) != std::string::npos;
    });
  };
  if (any("/constants.pkl")) return Kind::kScript;  // torch.save does not write it
  if (any("/data/aotinductor/")) return Kind::kPackage;
  if (any("/extra/crais.safetensors")) return Kind::kWeights;
  throw data_error(
      where, ": neither a checkpoint of train-vae, nor a model of crais.export, nor TorchScript",
      kModelInPython);
}

/// Code runs only from a file whose name says that it is code.
void check_name(Kind kind, const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  const bool is_script = ending == ".pt" || ending == ".pth", is_package = ending == ".pt2";
  const auto require = [&](bool agrees, const char* content, const char* name) {
    if (!agrees)
      throw data_error(path.string(), ": holds ", content,
                       ", and its name says otherwise; if you trust it, name it ",
                       path.stem().string(), name);
  };
  if (kind == Kind::kCheckpoint) require(!is_script && !is_package, "safetensors", ".safetensors");
  if (kind == Kind::kWeights) require(is_script || is_package, "weights of crais.export", ".pt2");
  if (kind == Kind::kPackage) require(is_package, "native code", ".pt2");
  if (kind == Kind::kScript) require(is_script, "TorchScript, which is code", ".pt");
}

}  // namespace

ModelFile::ModelFile(std::filesystem::path file)
    : path(std::move(file)), bytes(read_file(path)), kind(kind_of(bytes, where())) {
  check_name(kind, path);
}

std::string ModelFile::sha256() const { return crais::sha256(bytes); }

}  // namespace crais
