// Repeated moves of one shape: a device records the work once and replays it.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <optional>

#include "core/path.h"
#include "core/problem.h"
#include "core/transition.h"

namespace crais {

/// Records operations of fixed shapes and replays them, without a launch from the host for each.
class Recorder {
 public:
  virtual ~Recorder() = default;
  /// Records the device operations of `work`. `work` must have run before and must not wait for the
  /// device. From then on its tensors must keep their memory.
  virtual void record(const std::function<void()>& work) = 0;
  /// Runs the recorded operations on the same memory, with the next random numbers.
  virtual void replay() = 0;
};

/// A CUDA graph if `rng` is a CUDA generator and crais was built with graphs, unless
/// CRAIS_CUDA_GRAPHS=0; else null. `rng` must outlive it.
std::unique_ptr<Recorder> make_recorder(at::Generator& rng);

/// transition.step for one problem, one path and one stream of random numbers. With a recorder, the
/// first move runs directly, the second is recorded, and all later moves are replayed. The numbers
/// are the same, and the host launches one operation instead of about fifty. All arguments must
/// outlive the Mover.
class Mover {
 public:
  Mover(const Problem& problem, const Path& path, const Transition& transition, at::Generator& rng,
        std::unique_ptr<Recorder> recorder);
  Mover(const Problem& problem, const Path& path, const Transition& transition, at::Generator& rng);

  /// As Transition::step. The tensors of the result are valid until the next move.
  Moved operator()(const Particles& particles, const at::Tensor& beta, const at::Tensor& step_size);

 private:
  /// The arguments of a move, in the memory that replays read.
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
