#include "kernels/fused_decoder.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "core/plain.h"
#include "kernels/packing.h"
#include "kernels/processor.h"
#include "util/error.h"

namespace crais {
namespace {

constexpr int64_t kAlignment = 64;

/// Of this thread, kept for its next evaluation.
float* workspace(int64_t size) {
  thread_local std::vector<float> memory;
  const auto needed = static_cast<size_t>(size + kAlignment);
  if (memory.size() < needed) memory.resize(needed);
  const auto address = reinterpret_cast<uintptr_t>(memory.data());
  return memory.data() + (kAlignment - address % kAlignment) % kAlignment / sizeof(float);
}

}  // namespace

std::vector<const FusedKernel*> available_kernels() {
  std::vector<const FusedKernel*> kernels;
#ifdef CRAIS_X86_KERNELS
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("fma");
  const bool wide =
      avx512 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  if (wide && has_avx512_bfloat16() && has_tiles()) kernels.push_back(&kAmxKernel);
  if (wide && __builtin_cpu_supports("avx512vnni")) kernels.push_back(&kAvx512VnniKernel);
  if (avx512) kernels.push_back(&kAvx512Kernel);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    if (has_avx_vnni()) kernels.push_back(&kAvxVnniKernel);
    if (has_fast_integers()) kernels.push_back(&kAvx2BytesKernel);
    kernels.push_back(&kAvx2Kernel);
  }
#endif
  kernels.push_back(&kPortableKernel);
  return kernels;
}

const FusedKernel& fastest_exact() {
  for (const FusedKernel* kernel : available_kernels())
    if (has_exact_forces(*kernel)) return *kernel;
  return kPortableKernel;
}

double peak_flops(int64_t samples, const FusedKernel& kernel) {
  using Clock = std::chrono::steady_clock;
  double best = 0.0;
  for (int64_t i = 0; i < samples; ++i) {
    constexpr int64_t kRounds = 200'000;
    const auto start = Clock::now();
    const double operations = kernel.multiply_adds(kRounds);
    best = std::max(best, operations / std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

bool FusedDecoder::supports(const Vae& vae, const FusedKernel& kernel) {
  const std::vector<LinearLayer>& layers = vae.decoder.layers;
  const auto fits = [&](const LinearLayer& layer) {
    switch (kernel.packing) {
      case Packing::kBytesBack:
      case Packing::kFixedPoint:
        return layer.weight.size(1) <= kWidestFixedPoint;
      case Packing::kTiles:
        return layer.weight.size(0) <= kMostByteProducts;
      case Packing::kPanels:
        return true;
    }
    return false;
  };
  return layers.front().weight.is_cpu() && layers.front().weight.scalar_type() == at::kFloat &&
         std::all_of(layers.begin(), layers.end(), fits);
}

FusedDecoder::FusedDecoder(const Vae& vae, const FusedKernel& kernel,
                           std::shared_ptr<const FusedDecoder> cheap)
    : kernel_(kernel),
      activation_(vae.decoder.activation),
      likelihood_(vae.architecture.likelihood),
      latent_(vae.architecture.latent),
      pixels_(vae.architecture.num_pixels()),
      cheap_(std::move(cheap)) {
  TORCH_CHECK(supports(vae, kernel),
              "fused decoder: only float32 on the CPU, of layers of at most ", kWidestFixedPoint,
              " inputs in fixed point and ", kMostByteProducts, " outputs in tiles");
  for (const LinearLayer& layer : vae.decoder.layers)
    layers_.push_back(pack(layer, &layer == &vae.decoder.layers.back()));
}

template <class Number>
const Number* FusedDecoder::keep(const at::Tensor& packed) {
  TORCH_CHECK(reinterpret_cast<uintptr_t>(packed.data_ptr()) % kAlignment == 0,
              "fused decoder: LibTorch's memory is not aligned to ", kAlignment, " bytes");
  storage_.push_back(packed);
  return static_cast<const Number*>(packed.data_ptr());
}

PackedLayer FusedDecoder::pack(const LinearLayer& layer, bool is_last) {
  const at::Tensor w = layer.weight.detach();
  // A pixel that fills the last block must be sure of its value, lest its logarithm be counted.
  const bool is_logit = is_last && likelihood_.family == Likelihood::Family::kBernoulli;
  const double no_pixel = kernel_.packing == Packing::kTiles && is_logit ? -1e30 : 0.0;
  PackedLayer packed{};
  packed.inputs = w.size(1);
  packed.outputs = w.size(0);
  packed.bias = keep<float>(
      at::constant_pad_nd(layer.bias.detach(), {0, kernel_.panel_rows}, no_pixel).contiguous());
  if (kernel_.packing == Packing::kTiles) {
    packed.forward =
        keep<uint16_t>(tiles_of_parts(w.t(), is_last ? kPartsOfOutput : kPartsOfHidden));
    if (is_logit) {
      const PackedBytes back = tiles_of_bytes(w);
      packed.back_bytes = keep<int8_t>(back.bytes);
      packed.back_unit = keep<float>(back.unit);
    } else {
      packed.back = keep<uint16_t>(tiles_of(w));
    }
    return packed;
  }
  if (!has_exact_forces(kernel_)) {
    const PackedBytes back = panels_of_bytes(w, kernel_.panel_rows);
    packed.back_fours = keep<uint32_t>(back.bytes);
    packed.back_unit = keep<float>(back.unit);
  }
  if (kernel_.packing == Packing::kFixedPoint && is_logit) {
    const PackedFixedPoint fixed = fixed_point_of(w, kernel_.panel_rows);
    packed.fixed = {keep<uint32_t>(fixed.high), keep<uint32_t>(fixed.low),
                    keep<int32_t>(fixed.start), keep<float>(fixed.unit)};
  } else {
    packed.weight = keep<float>(panels_of(w, kernel_.panel_rows));
  }
  return packed;
}

void FusedDecoder::run(const at::Tensor& z, const at::Tensor& images, at::Tensor& log_density,
                       at::Tensor* grad) const {
  TORCH_CHECK(is_plain(z) && is_plain(images) && z.dim() == 3 && images.dim() == 2 &&
                  z.size(0) == images.size(0) && z.size(2) == latent_ && images.size(1) == pixels_,
              "fused decoder: wants contiguous float32 z [P,K,", latent_, "] and images [P,",
              pixels_, "] on the CPU, got ", z.sizes(), " and ", images.sizes());
  const bool is_gaussian = likelihood_.family == Likelihood::Family::kGaussian;
  const double sd = likelihood_.noise_sd;
  const PackedNetwork network{
      activation_,
      is_gaussian ? PixelFamily::kGaussian : PixelFamily::kBernoulli,
      static_cast<float>(1 / (sd * sd)),
      is_gaussian ? static_cast<double>(pixels_) * std::log(sd * std::sqrt(2 * M_PI)) : 0.0,
      static_cast<int64_t>(layers_.size()),
      layers_.data()};
  log_density = at::empty({z.size(0), z.size(1)}, z.options().dtype(at::kDouble));
  if (grad != nullptr) *grad = at::empty_like(z);
  kernel_.evaluate(
      network,
      {z.data_ptr<float>(), images.data_ptr<float>(), z.size(0), z.size(1),
       log_density.data_ptr<double>(), grad != nullptr ? grad->data_ptr<float>() : nullptr},
      workspace(kernel_.workspace_size(network)));
}

at::Tensor FusedDecoder::log_density(const at::Tensor& z, const at::Tensor& images) const {
  at::Tensor found;
  run(z, images, found, nullptr);
  return found;
}

Evaluation FusedDecoder::evaluate(const at::Tensor& z, const at::Tensor& images) const {
  Evaluation found;
  run(z, images, found.log_density, &found.grad);
  return found;
}

std::string chosen_evaluator() {
  const char* wanted = std::getenv("CRAIS_EVALUATOR");
  return wanted != nullptr ? wanted : available_kernels().front()->name;
}

std::shared_ptr<const FusedDecoder> make_fused_decoder(const Vae& vae) {
  const std::string wanted = chosen_evaluator();
  std::string choices;
  for (const FusedKernel* kernel : available_kernels()) {
    if (wanted == kernel->name) {
      const FusedKernel& exact = has_exact_forces(*kernel) ? *kernel : fastest_exact();
      if (!FusedDecoder::supports(vae, exact)) return nullptr;
      const bool has_cheap = &exact != kernel && FusedDecoder::supports(vae, *kernel);
      return std::make_shared<FusedDecoder>(
          vae, exact, has_cheap ? std::make_shared<FusedDecoder>(vae, *kernel) : nullptr);
    }
    choices += std::string(kernel->name) + ", ";
  }
  if (wanted == "aten") return nullptr;
  throw argument_error("CRAIS_EVALUATOR is '" + wanted + "'; this processor offers " + choices +
                       "aten");
}

}  // namespace crais
