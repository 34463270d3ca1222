// The density and gradient of a VAE's posterior in one pass over the decoder, on this processor.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "core/target.h"
#include "kernels/fused_kernel.h"
#include "models/network.h"

namespace crais {

/// The kernels this processor and its system run, the fastest first.
std::vector<const FusedKernel*> available_kernels();

/// Whether its forces are in float32, as its values are.
inline bool has_exact_forces(const FusedKernel& kernel) {
  return kernel.packing == Packing::kPanels;
}

/// The fastest of them whose forces are in float32.
const FusedKernel& fastest_exact();

/// A decoder with Bernoulli, continuous Bernoulli or normal pixels, its weights packed once for a
/// kernel. Immutable, so that threads share it.
class FusedDecoder {
 public:
  /// Float32 on the CPU; logits, or means as they are or by a sigmoid or tanh; residual connections
  /// between hidden layers, one at most from each, not from the output of a SiLU, a GELU, a Mish or
  /// a normalisation; normalisations of hidden layers, of whole channels where units are an image.
  /// Kernels in fixed point take sums of at most kWidestFixedPoint inputs, kernels by tiles neither
  /// layers of images, residual connections nor normalisations, only activations whose slope is a
  /// function of their output, and means as they are.
  static bool supports(const DecoderNetwork& network, const FusedKernel& kernel);

  /// Copies the decoder. Throws c10::Error unless `supports(network, kernel)`. `cheap`, which may
  /// be null, is the same decoder for a kernel with cheap forces.
  FusedDecoder(const DecoderNetwork& network, const FusedKernel& kernel,
               std::shared_ptr<const FusedDecoder> cheap = nullptr);

  /// log N(z; 0, I) + log p(x | z) for z [P,K,D] and images [P,pixels], float32 on the CPU and
  /// contiguous: [P,K] float64, nats. A particle's result is the same bits wherever it stands.
  /// Cost: 1 density per particle.
  at::Tensor log_density(const at::Tensor& z, const at::Tensor& images) const;

  /// The same with its gradient [P,K,D] float32, of whatever accuracy the kernel gives it. Cost: 1
  /// per particle, a product a layer and direction.
  Evaluation evaluate(const at::Tensor& z, const at::Tensor& images) const;

  /// Logits or means [N,pixels] float32 of z [N,D], as the density has them. Requires a kernel that
  /// has `decode`, as those with exact forces do. Cost: half an evaluation a row.
  at::Tensor decode(const at::Tensor& z) const;

  /// "fused-avx512", "fused-amx", ...
  std::string name() const { return kernel_.name; }

  /// The same decoder with cheap forces; null where there is none.
  const std::shared_ptr<const FusedDecoder>& cheap() const { return cheap_; }

 private:
  void run(const at::Tensor& z, const at::Tensor& images, at::Tensor& log_density,
           at::Tensor* grad) const;

  PackedNetwork network() const;
  PackedLayer pack(const Layer& layer, bool is_last);
  PackedLayer pack_convolution(const Layer& layer);
  PackedLayer pack_interpolation(const Layer& layer);
  PackedGather pack_gather(const Convolution& convolution, const at::Tensor& weight, bool adjoint);
  template <class Number>
  const Number* keep(const at::Tensor& packed);
  template <class Record>
  const Record* keep(const std::vector<Record>& records);

  const FusedKernel& kernel_;
  Likelihood likelihood_;
  int64_t latent_, pixels_;
  std::vector<at::Tensor> storage_;  // what layers_ points to
  std::vector<PackedLayer> layers_;
  const int32_t *latent_order_ = nullptr, *pixel_order_ = nullptr;
  std::shared_ptr<const FusedDecoder> cheap_;
};

/// The evaluator of decoders that kernels support: the fastest kernel here ("fused-avx512"), or
/// what the environment variable CRAIS_EVALUATOR names, "aten" among it.
std::string chosen_evaluator();

/// With forces in float32, by the fastest such kernel here; its `cheap` is by what
/// `chosen_evaluator` names, where that is a kernel with cheap forces, or by the fastest one after
/// it that supports the decoder. Null where "aten" is named or the decoder is not supported. Throws
/// Error kArgument if this processor cannot run what is named.
std::shared_ptr<const FusedDecoder> make_fused_decoder(const DecoderNetwork& network);

}  // namespace crais
