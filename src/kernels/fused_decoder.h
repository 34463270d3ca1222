// The density and gradient of a VAE's posterior in one pass over the decoder, on the CPU.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "core/target.h"
#include "kernels/fused_kernel.h"
#include "models/network.h"

namespace crais {

/// The kernels that this processor and its operating system can run, fastest first.
std::vector<const FusedKernel*> available_kernels();

/// The fastest available kernel with forces in float32.
const FusedKernel& fastest_exact();

/// True if ATen multiplies bfloat16 matrices with float32 sums faster than float32 matrices: at
/// least 5 times as fast by tiles (AMX), 2 times by AMD's dot products. On other processors it is
/// slower.
bool has_bfloat16_products();

/// A decoder with Bernoulli, continuous Bernoulli or normal pixels, with its weights packed once
/// for a kernel. Immutable: threads may share it.
class FusedDecoder {
 public:
  /// True if `kernel` can evaluate `network`. The network must be float32 on the CPU. Outputs are
  /// logits, or means that are linear, a sigmoid or a tanh. Residual connections join hidden
  /// layers, at most one from each, and none from the output of a SiLU, a GELU, a Mish or a
  /// normalisation. Normalisations belong to hidden layers, and cover whole channels if units are
  /// an image. A kernel in fixed point takes sums of at most kWidestFixedPoint inputs.
  static bool supports(const DecoderNetwork& network, const FusedKernel& kernel);

  /// Copies the decoder. Throws c10::Error unless `supports(network, kernel)`. `cheap` is the same
  /// decoder for a kernel with cheap forces, or null.
  FusedDecoder(const DecoderNetwork& network, const FusedKernel& kernel,
               std::shared_ptr<const FusedDecoder> cheap = nullptr);

  /// log N(z; 0, I) + log p(x | z), [P,K] float64, nats, for z [P,K,D] and images [P,pixels],
  /// float32 on the CPU and contiguous. The result of a particle has the same bits at every
  /// position. Cost: 1 density a particle.
  at::Tensor log_density(const at::Tensor& z, const at::Tensor& images) const;

  /// The density with its gradient [P,K,D] float32, in the kernel's accuracy. Cost: 1 evaluation a
  /// particle, which is one product for each layer and direction.
  Evaluation evaluate(const at::Tensor& z, const at::Tensor& images) const;

  /// Logits or means [N,pixels] float32 at z [N,D], as the density uses them. Not for a kernel in
  /// fixed point. Cost: half an evaluation a row.
  at::Tensor decode(const at::Tensor& z) const;

  /// The name of the evaluator: "fused-avx512", "fused-avx2", ...
  std::string name() const { return kernel_.name; }

  /// The decoder with cheap forces, or null.
  const std::shared_ptr<const FusedDecoder>& cheap() const { return cheap_; }

 private:
  void run(const at::Tensor& z, const at::Tensor& images, at::Tensor& log_density,
           at::Tensor* grad) const;

  PackedNetwork network() const;
  PackedLayer pack(const Layer& layer, bool is_last);
  PackedGather pack_gather(const Convolution& convolution, const at::Tensor& weight, bool adjoint);
  template <class Number>
  const Number* keep(const at::Tensor& packed);
  template <class Record>
  const Record* keep(const std::vector<Record>& records);

  const FusedKernel& kernel_;
  Likelihood likelihood_;
  int64_t latent_, pixels_;
  std::vector<at::Tensor> storage_;  // owns the memory that layers_ points to
  std::vector<PackedLayer> layers_;
  const int32_t *latent_order_ = nullptr, *pixel_order_ = nullptr;
  std::shared_ptr<const FusedDecoder> cheap_;
};

/// The evaluator for decoders that kernels support: the environment variable CRAIS_EVALUATOR (may
/// be "aten"), else the fastest kernel of this processor ("fused-avx512").
std::string chosen_evaluator();

/// A fused decoder with forces in float32, for the fastest such kernel of this processor. Its
/// `cheap` uses the kernel of `chosen_evaluator` if that is in fixed point and takes the decoder.
/// Null if `chosen_evaluator` is "aten" or the decoder is not supported. Throws Error kArgument if
/// this processor cannot run the chosen evaluator.
std::shared_ptr<const FusedDecoder> make_fused_decoder(const DecoderNetwork& network);

}  // namespace crais
