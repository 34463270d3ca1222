// A compiled function of a .pt2 package.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

namespace crais {

/// Threads call it side by side.
class PackageRunner {
 public:
  /// Loads the code, which runs it. Throws Error kData where it cannot be loaded.
  PackageRunner(const std::string& path, const std::string& function);
  ~PackageRunner();
  PackageRunner(PackageRunner&&) noexcept;
  PackageRunner& operator=(PackageRunner&&) noexcept;

  std::vector<at::Tensor> operator()(const std::vector<at::Tensor>& inputs) const;

 private:
  struct Loader;
  std::unique_ptr<Loader> loader_;
};

}  // namespace crais
