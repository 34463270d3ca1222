#include "models/autocast.h"

#include <ATen/autocast_mode.h>

#include "util/error.h"

namespace crais {

Autocast::Autocast(at::Device device, at::ScalarType dtype) : device_(device.type()) {
  if (!device.is_cpu() && !device.is_cuda())
    throw argument_error("`force_dtype` other than float32 is for models on the CPU and on CUDA");
  enabled_before_ = at::autocast::is_autocast_enabled(device_);
  dtype_before_ = at::autocast::get_autocast_dtype(device_);
  at::autocast::set_autocast_dtype(device_, dtype);
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, enabled_before_);
  at::autocast::set_autocast_dtype(device_, dtype_before_);
}

}  // namespace crais
