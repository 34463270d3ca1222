// What times are compared with: the matrix products alone, the processor's peak, and the evaluator
// that a script would have.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/target.h"
#include "models/vae.h"

namespace crais::bench {

/// Seconds for each contender, of the processor on one thread or of the wall clock on another
/// device: the median over rounds in which they take turns, so that a slow moment of the machine
/// falls on all.
struct Contender {
  std::string name;
  std::function<void()> run;
};
std::map<std::string, double> medians(const std::vector<Contender>& contenders, int64_t rounds,
                                      at::Device device = at::kCPU);

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

/// log p(x, z) and its gradient as a typical script has it: the image repeated for each particle,
/// weights that ask for gradients, autograd.
class ScriptPosterior : public Target {
 public:
  ScriptPosterior(const Vae& vae, at::Tensor images);
  int64_t num_problems() const override { return images_.size(0); }
  int64_t dim() const override { return vae_.architecture.latent; }
  at::Tensor log_density(const at::Tensor& z) const override;

 private:
  Vae vae_;
  at::Tensor images_;
};

/// The processor, LibTorch and its BLAS.
std::string machine();

}  // namespace crais::bench
