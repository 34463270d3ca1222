#include "models/autocast.h"

#include <ATen/autocast_mode.h>
#include <torch/version.h>

#include "util/error.h"

namespace crais {
namespace {

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 5)

bool enabled(at::DeviceType device) { return at::autocast::is_autocast_enabled(device); }
void enable(at::DeviceType device, bool on) { at::autocast::set_autocast_enabled(device, on); }
at::ScalarType type(at::DeviceType device) { return at::autocast::get_autocast_dtype(device); }
void set_type(at::DeviceType device, at::ScalarType dtype) {
  at::autocast::set_autocast_dtype(device, dtype);
}

#else  // a function for each kind of device

bool enabled(at::DeviceType device) {
  return device == at::kCPU ? at::autocast::is_cpu_enabled() : at::autocast::is_enabled();
}
void enable(at::DeviceType device, bool on) {
  device == at::kCPU ? at::autocast::set_cpu_enabled(on) : at::autocast::set_enabled(on);
}
at::ScalarType type(at::DeviceType device) {
  return device == at::kCPU ? at::autocast::get_autocast_cpu_dtype()
                            : at::autocast::get_autocast_gpu_dtype();
}
void set_type(at::DeviceType device, at::ScalarType dtype) {
  device == at::kCPU ? at::autocast::set_autocast_cpu_dtype(dtype)
                     : at::autocast::set_autocast_gpu_dtype(dtype);
}

#endif

}  // namespace

Autocast::Autocast(at::Device device, at::ScalarType dtype) : device_(device.type()) {
  if (!device.is_cpu() && !device.is_cuda())
    throw argument_error("`force_dtype` other than float32 is for models on the CPU and on CUDA");
  enabled_before_ = enabled(device_);
  dtype_before_ = type(device_);
  set_type(device_, dtype);
  enable(device_, true);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  enable(device_, enabled_before_);
  set_type(device_, dtype_before_);
}

}  // namespace crais
