// Moves of the same shape, one after another.
#pragma once

#include <memory>
#include <optional>

#include "core/path.h"
#include "core/problem.h"
#include "core/transition.h"
#include "samplers/recorder.h"

namespace crais {

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
