#include "core/rng.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

namespace crais {

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

}  // namespace crais
