// What times are compared with: the matrix products alone.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <string>
#include <vector>

#include "models/vae.h"

namespace crais::bench {

/// What a bench is called with, [DEVICE] [ROUNDS [NUMBER...]]. Sets one thread, and memory that
/// is kept, as programs have it, and says which machine this is.
struct Arguments {
  at::Device device = at::kCPU;
  int64_t rounds = 0;
  std::vector<int64_t> numbers;
};
Arguments arguments_of(int argc, char** argv, int64_t rounds);

struct Contender {
  std::string name;
  std::function<void()> run;
};

/// Prints each contender's time for so many `evaluations`, of the processor on one thread or of the
/// wall clock on another device, in units of the first: the median over rounds in which they take
/// turns, so that a slow moment of the machine falls on all. `flops` are the first one's.
void report(const std::string& group, const Arguments& arguments,
            const std::vector<Contender>& contenders, int64_t rounds, int64_t evaluations,
            double flops);

/// The floor F: three products forward and three back to z (a product a layer and direction), by
/// LibTorch's BLAS into preallocated outputs. Nothing else.
class GemmFloor {
 public:
  GemmFloor(const Network& decoder, int64_t rows);
  void run();
  double flops() const { return flops_; }

 private:
  std::vector<at::Tensor> weights_, activations_, gradients_;
  double flops_ = 0.0;
};

}  // namespace crais::bench
