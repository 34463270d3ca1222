#include "kernels/fused_decoder.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "util/error.h"

namespace crais {
namespace {

constexpr int64_t kAlignment = 64;

/// W [rows, columns] as [panels][columns, filled][panel_rows], zeros filling.
at::Tensor panels_of(const at::Tensor& w, int64_t panel_rows) {
  const auto missing = [&](int64_t dim) {
    return (panel_rows - w.size(dim) % panel_rows) % panel_rows;
  };
  const at::Tensor filled = at::constant_pad_nd(w, {0, missing(1), 0, missing(0)});
  return filled.reshape({-1, panel_rows, filled.size(1)}).transpose(1, 2).contiguous();
}

bool is_plain(const at::Tensor& x) {
  return x.is_cpu() && x.scalar_type() == at::kFloat && x.is_contiguous();
}

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
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("fma"))
    kernels.push_back(&kAvx512Kernel);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    kernels.push_back(&kAvx2Kernel);
#endif
  kernels.push_back(&kPortableKernel);
  return kernels;
}

double peak_flops(int64_t samples) {
  using Clock = std::chrono::steady_clock;
  const FusedKernel& kernel = *available_kernels().front();
  double best = 0.0;
  for (int64_t i = 0; i < samples; ++i) {
    constexpr int64_t kRounds = 200'000;
    const auto start = Clock::now();
    const double operations = kernel.multiply_adds(kRounds);
    best = std::max(best, operations / std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

bool FusedDecoder::supports(const Vae& vae) {
  const at::Tensor& weight = vae.decoder.layers.front().weight;
  return weight.is_cpu() && weight.scalar_type() == at::kFloat &&
         vae.architecture.likelihood.family == Likelihood::Family::kBernoulli;
}

FusedDecoder::FusedDecoder(const Vae& vae, const FusedKernel& kernel)
    : kernel_(kernel),
      activation_(vae.decoder.activation),
      latent_(vae.architecture.latent),
      pixels_(vae.architecture.num_pixels()) {
  TORCH_CHECK(supports(vae), "fused decoder: only float32 on the CPU with Bernoulli pixels");
  const auto keep = [this](const at::Tensor& packed) {
    TORCH_CHECK(reinterpret_cast<uintptr_t>(packed.data_ptr()) % kAlignment == 0,
                "fused decoder: LibTorch's memory is not aligned to ", kAlignment, " bytes");
    storage_.push_back(packed);
    return packed.data_ptr<float>();
  };
  for (const LinearLayer& layer : vae.decoder.layers) {
    const at::Tensor w = layer.weight.detach();
    layers_.push_back({w.size(1), w.size(0), keep(panels_of(w, kernel.panel_rows)),
                       keep(at::constant_pad_nd(layer.bias.detach(), {0, kernel.panel_rows}))});
  }
}

void FusedDecoder::run(const at::Tensor& z, const at::Tensor& images, at::Tensor& log_density,
                       at::Tensor* grad) const {
  TORCH_CHECK(is_plain(z) && is_plain(images) && z.dim() == 3 && images.dim() == 2 &&
                  z.size(0) == images.size(0) && z.size(2) == latent_ && images.size(1) == pixels_,
              "fused decoder: wants contiguous float32 z [P,K,", latent_, "] and images [P,",
              pixels_, "] on the CPU, got ", z.sizes(), " and ", images.sizes());
  const PackedNetwork network{activation_, static_cast<int64_t>(layers_.size()), layers_.data()};
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
    if (wanted == kernel->name)
      return FusedDecoder::supports(vae) ? std::make_shared<FusedDecoder>(vae, *kernel) : nullptr;
    choices += std::string(kernel->name) + ", ";
  }
  if (wanted == "aten") return nullptr;
  throw argument_error("CRAIS_EVALUATOR is '" + wanted + "'; this processor offers " + choices +
                       "aten");
}

}  // namespace crais
