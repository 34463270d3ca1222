// The density and gradient of a VAE's posterior in one pass over the decoder, on this processor.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "core/target.h"
#include "kernels/fused_kernel.h"
#include "models/vae.h"

namespace crais {

/// The kernels this processor runs, the fastest first.
std::vector<const FusedKernel*> available_kernels();

/// Float32 operations a second that one core does at most: the fastest of `samples` runs of
/// multiply-adds in registers, about 1 ms each.
double peak_flops(int64_t samples);

/// A decoder MLP with Bernoulli pixels, its weights packed once for a kernel. Immutable, so that
/// threads share it.
class FusedDecoder {
 public:
  /// Float32 on the CPU, Bernoulli pixels: what the kernels compute.
  static bool supports(const Vae& vae);

  /// Copies the decoder. Throws c10::Error unless `supports(vae)`.
  FusedDecoder(const Vae& vae, const FusedKernel& kernel);

  /// log N(z; 0, I) + log p(x | z) for z [P,K,D] and images [P,pixels], float32 on the CPU and
  /// contiguous: [P,K] float64, nats. A particle's result is the same bits wherever it stands.
  /// Cost: 1 density per particle.
  at::Tensor log_density(const at::Tensor& z, const at::Tensor& images) const;

  /// The same with its gradient [P,K,D] float32. Cost: 1 per particle, six matrix products.
  Evaluation evaluate(const at::Tensor& z, const at::Tensor& images) const;

  /// "fused-avx512", "fused-avx2", "fused-portable".
  std::string name() const { return kernel_.name; }

 private:
  void run(const at::Tensor& z, const at::Tensor& images, at::Tensor& log_density,
           at::Tensor* grad) const;

  const FusedKernel& kernel_;
  Activation activation_;
  int64_t latent_, pixels_;
  std::vector<at::Tensor> storage_;  // what layers_ points to
  std::vector<PackedLayer> layers_;
};

/// The evaluator of decoders that kernels support: the fastest kernel here ("fused-avx512"), or
/// what the environment variable CRAIS_EVALUATOR names, "aten" among it.
std::string chosen_evaluator();

/// For the fastest kernel here, or the one that the environment variable CRAIS_EVALUATOR names;
/// null where that is "aten" or the decoder is not supported. Throws Error kArgument if this
/// processor cannot run what it names.
std::shared_ptr<const FusedDecoder> make_fused_decoder(const Vae& vae);

}  // namespace crais
