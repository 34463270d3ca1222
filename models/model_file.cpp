#include "models/model_file.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "io/zip.h"
#include "util/digest.h"
#include "util/files.h"

namespace crais {
namespace {

ModelFile::Kind kind_of(const std::vector<std::string>& entries) {
  const auto any = [&](const auto& is_one) {
    return std::any_of(entries.begin(), entries.end(), is_one);
  };
  const auto ends = [&](const char* end) {
    return any([&](const std::string& name) { return name.ends_with(end); });
  };
  if (ends("/constants.pkl")) return ModelFile::Kind::kScript;  // torch.save does not write it
  const bool is_package = entries.size() == 1                   // weights without code
                              ? ends("/extra/crais.safetensors")
                              : any([](const std::string& name) {
                                  return name.find("/data/aotinductor/") != std::string::npos;
                                });
  return is_package ? ModelFile::Kind::kPackage : ModelFile::Kind::kWeights;
}

}  // namespace

ModelFile::ModelFile(std::filesystem::path file) : path(std::move(file)), bytes(read_file(path)) {
  if (is_zip(bytes)) kind = kind_of(ZipArchive(bytes, where()).names());
}

std::string ModelFile::sha256() const { return crais::sha256(bytes); }

}  // namespace crais
