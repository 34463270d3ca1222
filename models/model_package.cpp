#include "models/model_package.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "io/json.h"
#include "io/zip.h"
#include "models/model_manifest.h"
#include "models/package_runner.h"
#include "util/error.h"
#include "util/files.h"
#include "util/version.h"

namespace crais {
namespace {

constexpr const char* kEntry = "/extra/crais.safetensors";

/// The entry that describes the model; "" in another archive.
std::string entry_of(const ZipArchive& archive) {
  const std::string end = kEntry;
  for (const std::string& name : archive.names())
    if (name.size() > end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0)
      return name;
  return "";
}

/// What the processor can do, by the names of /proc/cpuinfo; empty where nothing says so.
std::set<std::string> processor_flags() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line))
    if (line.rfind("flags", 0) == 0 || line.rfind("Features", 0) == 0) {
      std::istringstream words(line.substr(line.find(':') + 1));
      return {std::istream_iterator<std::string>(words), std::istream_iterator<std::string>()};
    }
  return {};
}

std::string without_patch(const std::string& version) {
  return version.substr(0, version.find('.', version.find('.') + 1));
}

/// Native code must be of this LibTorch and for this processor.
void check_machine(const ModelManifest& m, const std::string& where) {
  if (without_patch(m.torch) != without_patch(libtorch_version()))
    throw data_error(where + ": exported with PyTorch " + quoted(m.torch) + ", this is LibTorch " +
                     libtorch_version() + kExportAgain + " under PyTorch " +
                     without_patch(libtorch_version()));
#if defined(__x86_64__)
  const std::string here = "x86_64";
#elif defined(__aarch64__)
  const std::string here = "aarch64";
#else
  const std::string here = "another";
#endif
  if (m.machine != here)
    throw data_error(where + ": exported on " + quoted(m.machine) + ", this machine is " + here +
                     kExportAgain + " here");
  const std::set<std::string> present = processor_flags();
  if (present.empty()) return;
  std::string missing;
  for (const std::string& flag : m.cpu_flags)
    if (present.count(flag) == 0) missing += " " + flag;
  if (!missing.empty())
    throw data_error(where + ": its code needs" + missing.substr(0, 80) +
                     ", which this processor lacks" + kExportAgain +
                     " here, or for both machines (march=\"x86-64-v3\")");
}

class ModelPackage : public ManifestModel {
 public:
  ModelPackage(ModelManifest manifest, const std::string& where)
      : ManifestModel(std::move(manifest), where) {
    for (const std::string& function : description().functions)
      runners_.emplace(function, PackageRunner(where, function));
  }

  std::string evaluator() const override { return "aoti"; }

  Density joint(const at::Tensor& z, const at::Tensor& x) const override {
    return density("joint", z, {z, x});
  }
  std::optional<Density> prior(const at::Tensor& z) const override {
    if (!description().has("prior")) return {};
    return density("prior", z, {z});
  }

 private:
  Density density(const std::string& function, const at::Tensor& z,
                  const std::vector<at::Tensor>& inputs) const {
    const auto result =
        checked(function, call(function, inputs), {{z.size(0)}, {z.size(0), z.size(1)}});
    return {result[0], result[1]};
  }

  std::vector<at::Tensor> call(const std::string& function,
                               std::vector<at::Tensor> inputs) const override {
    for (at::Tensor& input : inputs) input = input.contiguous();
    return runners_.at(function)(inputs);
  }

  std::map<std::string, PackageRunner> runners_;
};

}  // namespace

bool is_model_package(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  if (!is_zip(bytes)) return false;
  const ZipArchive archive(bytes, path.string());
  return std::any_of(archive.names().begin(), archive.names().end(), [](const std::string& name) {
    return name.find("/data/aotinductor/") != std::string::npos;
  });
}

std::shared_ptr<const LatentModel> read_model_package(const std::filesystem::path& path) {
  const std::string where = path.string(), bytes = read_file(path);
  require_package_support(where);
  ZipArchive archive(bytes, where);
  const std::string entry = entry_of(archive);
  if (entry.empty())
    throw data_error(where + ": a .pt2 package without " + (kEntry + 1) + kExportAgain);
  ModelManifest manifest = read_manifest(archive.read(entry), where + ": " + (kEntry + 1));
  check_machine(manifest, where);
  auto package = std::make_shared<ModelPackage>(manifest, where);
  check_values(manifest, *package, where);
  return package;
}

}  // namespace crais
