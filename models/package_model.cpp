#include "models/package_model.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <thread>
#include <type_traits>

#include "io/json.h"
#include "io/zip.h"
#include "models/function_model.h"
#include "util/error.h"
#include "util/version.h"

namespace crais {
namespace {

/// The abilities of the processor, by their names in /proc/cpuinfo; empty if they are unknown.
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

/// The checked description of an archive that holds one.
ModelManifest manifest_of(ZipArchive& archive, const std::string& where) {
  const std::string entry = "extra/crais.safetensors";
  const std::vector<std::string>& names = archive.names();
  const auto position = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
    return name.ends_with("/" + entry);
  });
  if (position == names.end())
    throw data_error(where, ": a .pt2 package without ", entry, kExportAgain);
  return read_manifest(archive.read(*position), where + ": " + entry);
}

/// Checks that native code is for this LibTorch and this processor.
void check_machine(const ModelManifest& m, const std::string& where) {
  if (without_patch(m.torch) != without_patch(libtorch_version()))
    throw data_error(where, ": exported with PyTorch ", quoted(m.torch), ", this is LibTorch ",
                     libtorch_version(), kExportAgain, " under PyTorch ",
                     without_patch(libtorch_version()));
#if defined(__x86_64__)
  const std::string this_machine = "x86_64";
#elif defined(__aarch64__)
  const std::string this_machine = "aarch64";
#else
  const std::string this_machine = "another";
#endif
  if (m.machine != this_machine)
    throw data_error(where, ": exported on ", quoted(m.machine), ", this machine is ", this_machine,
                     kExportAgain, " here");
  const std::set<std::string> present = processor_flags();
  if (present.empty()) return;
  std::string missing;
  for (const std::string& flag : m.cpu_flags)
    if (present.count(flag) == 0) missing += " " + flag;
  if (!missing.empty())
    throw data_error(where, ": its code needs", missing.substr(0, 80),
                     ", which this processor lacks", kExportAgain,
                     " here, or for both machines (march=\"x86-64-v3\")");
}

/// Checks the device that code was compiled for. If there are several, the loader takes the first.
void check_device(const ModelManifest& m, at::Device device, const std::string& where) {
  const std::string wanted_device = device.is_cpu() ? "cpu" : "cuda";
  if (m.device != wanted_device)
    throw argument_error("`device`: ", where, " was exported for ", m.device,
                         ", whose `device` is ", m.device, kExportAgain, " of a model on ",
                         wanted_device);
  if (device.has_index() && device.index() > 0)
    throw argument_error("`device`: packages run on the first CUDA device; CUDA_VISIBLE_DEVICES=",
                         device.index(), " makes another the first");
}

using Package = torch::inductor::AOTIModelPackageLoader;

/// Opens libtorch.so. The code of a package asks for this library by name. A program is linked
/// against libtorch_cpu.so alone, and its search path does not apply to libraries that are opened
/// later, so this function opens the libtorch.so in the same folder first.
void open_libtorch() {
  Dl_info here;
  if (dladdr(reinterpret_cast<const void*>(&at::get_num_threads), &here) == 0) return;
  const auto beside = std::filesystem::path(here.dli_fname).parent_path() / "libtorch.so";
  dlopen(beside.c_str(), RTLD_NOW | RTLD_GLOBAL);  // if this fails, the loader reports it
}

/// Runs one package in several threads at once, if this LibTorch can (such as 2.8).
template <typename Loaded>
std::unique_ptr<Loaded> load(const std::string& path, const std::string& function) {
  using Path = const std::string&;
  if constexpr (std::is_constructible_v<Loaded, Path, Path, bool, size_t>)
    return std::make_unique<Loaded>(path, function, /*run_single_threaded=*/false,
                                    std::max(1U, std::thread::hardware_concurrency()));
  else
    return std::make_unique<Loaded>(path, function);
}

/// Loads the package's functions, which runs its code. Threads may call them at the same time.
ModelFunctions functions_of(const std::vector<std::string>& names, const std::string& where) {
  std::map<std::string, std::shared_ptr<Package>> packages;
  for (const std::string& name : names) {
    try {
      open_libtorch();
      packages.emplace(name, load<Package>(where, name));
    } catch (const std::exception& error) {
      const std::string text = error.what();
      throw data_error(where, ": '", name, "' cannot be loaded: ", text.substr(0, text.find('\n')));
    }
  }
  return [packages](const std::string& name, std::vector<at::Tensor> inputs) {
    for (at::Tensor& input : inputs) input = input.contiguous();
    return packages.at(name)->run(inputs);
  };
}

}  // namespace

std::shared_ptr<const LatentModel> read_package_model(const ModelFile& file, at::Device device,
                                                      at::ScalarType dtype) {
  const std::string where = file.where();
  ZipArchive archive(file.bytes, where);
  const ModelManifest manifest = manifest_of(archive, where);
  std::shared_ptr<const LatentModel> model;
  if (manifest.vae) {
    model = std::make_shared<NetworkModel>(manifest, where, device, dtype);
  } else {
    if (file.kind == ModelFile::Kind::kWeights)
      throw data_error(where, ": holds neither code nor the weights of an MLP", kExportAgain);
    check_machine(manifest, where);
    check_device(manifest, device, where);
    model = std::make_shared<FunctionModel>(manifest, functions_of(manifest.model.functions, where),
                                            FunctionPlace{device, "aoti", where});
  }
  check_values(manifest, *model, where);
  return model;
}

}  // namespace crais
