#include "core/rng.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include <memory>
#include <mutex>
#include <optional>

#include "simd/simd_kernel.h"

namespace crais {
namespace {

/// LibTorch's CPU generator. Its bits become the keys of counter-based streams.
class CounterGenerator : public at::CPUGeneratorImpl {
 public:
  explicit CounterGenerator(uint64_t seed) : at::CPUGeneratorImpl(seed) {}

 private:
  CounterGenerator* clone_impl() const override {
    auto copy = std::make_unique<CounterGenerator>(0);
    copy->set_state(*get_state());
    return copy.release();
  }
};

/// The key of one call; nothing if `rng` is not a counting generator or `x` cannot be filled by
/// one.
std::optional<uint64_t> next_key(const at::Tensor& x, at::Generator& rng) {
  if (!x.is_cpu() || !x.is_contiguous()) return {};
  auto* const counter = dynamic_cast<CounterGenerator*>(rng.unsafeGetGeneratorImpl());
  if (counter == nullptr) return {};
  const std::lock_guard<std::mutex> lock(counter->mutex_);
  return counter->random64();
}

}  // namespace

uint64_t mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

uint64_t derive_seed(uint64_t seed, Purpose purpose, uint64_t index) {
  return mix64(mix64(mix64(seed) ^ static_cast<uint64_t>(purpose)) ^ index);
}

double hashed_uniform(uint64_t seed, uint64_t index) {
  return static_cast<double>(mix64(mix64(seed) ^ index) >> 11) * 0x1.0p-53;
}

at::Generator make_generator(uint64_t seed, at::Device device) {
  if (device.is_cpu()) return at::make_generator<at::CPUGeneratorImpl>(seed);
  // Only the CUDA backend knows its generator's type; a clone of its default keeps this file
  // free of CUDA headers.
  at::Generator generator = at::globalContext().defaultGenerator(device).clone();
  generator.set_current_seed(seed);
  return generator;
}

at::Generator make_counting_generator(uint64_t seed, at::Device device) {
  return device.is_cpu() ? at::make_generator<CounterGenerator>(seed)
                         : make_generator(seed, device);
}

at::Tensor fill_normal(at::Tensor x, at::Generator& rng) {
  const auto key = x.scalar_type() == at::kFloat ? next_key(x, rng) : std::nullopt;
  if (!key) return x.normal_(0, 1, rng);
  simd_kernel().normals(*key, x.data_ptr<float>(), x.numel());
  return x;
}

at::Tensor fill_uniform(at::Tensor x, at::Generator& rng, double low, double high) {
  const bool is_float = x.scalar_type() == at::kFloat;
  const auto key = is_float || x.scalar_type() == at::kDouble ? next_key(x, rng) : std::nullopt;
  if (!key) return x.uniform_(low, high, rng);
  if (is_float)
    simd_kernel().uniforms(*key, x.data_ptr<float>(), x.numel());
  else
    simd_kernel().wide_uniforms(*key, x.data_ptr<double>(), x.numel());
  if (low != 0 || high != 1) x.mul_(high - low).add_(low);
  return x;
}

}  // namespace crais
