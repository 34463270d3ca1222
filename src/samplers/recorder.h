// Work of a device that is recorded once and run again and again.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>

namespace crais {

/// Records operations of fixed shapes, which then run without the host launching each of them.
class Recorder {
 public:
  virtual ~Recorder() = default;
  /// Records what `work` asks of the device. `work` must have run before, must not wait for the
  /// device, and its tensors stay where they are from then on.
  virtual void record(const std::function<void()>& work) = 0;
  /// Runs what was recorded on the same memory, with the next random numbers.
  virtual void replay() = 0;
};

/// A CUDA graph, if `rng` is a CUDA generator and crais was built with graphs, unless
/// CRAIS_CUDA_GRAPHS=0 forbids them; else null. `rng` must outlive it.
std::unique_ptr<Recorder> make_recorder(at::Generator& rng);

}  // namespace crais
