#include "models/package_runner.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <thread>
#include <type_traits>

#include "util/error.h"

namespace crais {
namespace {

using Package = torch::inductor::AOTIModelPackageLoader;

/// The code of a package asks for libtorch.so by name. A program is linked against libtorch_cpu.so
/// alone, and its search path does not serve libraries that are opened later: so the one that lies
/// beside is opened before.
void open_libtorch() {
  Dl_info here;
  if (dladdr(reinterpret_cast<const void*>(&at::get_num_threads), &here) == 0) return;
  const auto beside = std::filesystem::path(here.dli_fname).parent_path() / "libtorch.so";
  dlopen(beside.c_str(), RTLD_NOW | RTLD_GLOBAL);  // the loader says so where that fails
}

/// Several threads run one package side by side, where this LibTorch can (2.8, say).
template <typename Loaded>
std::unique_ptr<Loaded> load(const std::string& path, const std::string& function) {
  using Path = const std::string&;
  if constexpr (std::is_constructible_v<Loaded, Path, Path, bool, size_t>)
    return std::make_unique<Loaded>(path, function, /*run_single_threaded=*/false,
                                    std::max(1U, std::thread::hardware_concurrency()));
  else
    return std::make_unique<Loaded>(path, function);
}

}  // namespace

struct PackageRunner::Loader {
  std::unique_ptr<Package> package;
};

PackageRunner::PackageRunner(const std::string& path, const std::string& function) {
  try {
    open_libtorch();
    loader_ = std::make_unique<Loader>();
    loader_->package = load<Package>(path, function);
  } catch (const std::exception& error) {
    const std::string text = error.what();
    throw data_error(path + ": '" + function +
                     "' cannot be loaded: " + text.substr(0, text.find('\n')));
  }
}

std::vector<at::Tensor> PackageRunner::operator()(const std::vector<at::Tensor>& inputs) const {
  return loader_->package->run(inputs);
}

PackageRunner::~PackageRunner() = default;
PackageRunner::PackageRunner(PackageRunner&&) noexcept = default;
PackageRunner& PackageRunner::operator=(PackageRunner&&) noexcept = default;

}  // namespace crais
