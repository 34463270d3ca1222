// Moves of the same shape, one after another: work of a device that is recorded once and run again.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <optional>

#include "core/path.h"
#include "core/problem.h"
#include "core/transition.h"

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

/// transition.step for one problem, path and stream of random numbers. With a recorder the first
/// move runs as it is, the second is recorded, and all from then on are replayed: the numbers are
/// the same, and the host launches one thing instead of some fifty. All arguments must outlive it.
class Mover {
 public:
  Mover(const Problem& problem, const Path& path, const Transition& transition, at::Generator& rng,
        std::unique_ptr<Recorder> recorder);
  Mover(const Problem& problem, const Path& path, const Transition& transition, at::Generator& rng);

  /// As Transition::step. The result's tensors are good until the next move.
  Moved operator()(const Particles& particles, const at::Tensor& beta, const at::Tensor& step_size);

 private:
  /// A move's arguments, in the memory that replays read.
  struct Arguments {
    Particles particles;
    at::Tensor beta, step_size;
  };

  Moved step(const Arguments& arguments) const;
  Moved replayed(const Arguments& arguments);

  const Problem& problem_;
  const Path& path_;
  const Transition& transition_;
  at::Generator& rng_;
  std::unique_ptr<Recorder> recorder_;
  bool has_moved_ = false;
  std::optional<Arguments> recorded_;
  Moved moved_;
};

}  // namespace crais
