// PyTorch's autocast, while this lives: products of float32 tensors run in a shorter type.
#pragma once

#include <ATen/ATen.h>

namespace crais {

/// Of this thread, on one kind of device. Throws Error kArgument for a device without autocast.
class Autocast {
 public:
  Autocast(at::Device device, at::ScalarType dtype);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  at::DeviceType device_;
  bool enabled_before_;
  at::ScalarType dtype_before_;
};

}  // namespace crais
