/// @file
/// Random numbers from explicit generators. Each generator is seeded from its purpose; there is no
/// global state.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace crais {

/// The purpose of a stream of random numbers. Two purposes never share a stream.
enum class Purpose : uint64_t {
  kEstimate = 1,
  kPilot = 2,
  kSimulate = 3,
  kBinarise = 4,
  kInitialise = 5,
  kShuffle = 6,
  kTrain = 7,
  kValidate = 8,
  kSynthetic = 9,
  kCentre = 10,
  kBase = 11,
  kResample = 12,
  kWitness = 14,
  kRound = 15,
  kControl = 16,
};

/// One step of SplitMix64: a bijective mix of 64 bits.              [Steele, Lea & Flood 2014]
uint64_t mix64(uint64_t x);

/// The seed of stream `index` (a chunk, an epoch, an image) for `purpose` under the user's `seed`.
uint64_t derive_seed(uint64_t seed, Purpose purpose, uint64_t index = 0);

/// A uniform number in [0, 1) that depends on (seed, index) alone, on every machine and with every
/// LibTorch. For data that must never change, such as a static binarisation.
double hashed_uniform(uint64_t seed, uint64_t index);

/// Version of the random numbers that chains draw; results record it. The numbers of a released
/// version never change.
constexpr int kStreamVersion = 2;

/// A new seeded generator on `device`. The global generators are not touched.
at::Generator make_generator(uint64_t seed, at::Device device = at::kCPU);

/// A new seeded generator for chains: fill_normal and fill_uniform draw their own numbers from it,
/// several times as fast as LibTorch does. LibTorch's functions accept this generator like any
/// other.
at::Generator make_counting_generator(uint64_t seed, at::Device device = at::kCPU);

/// Fills `x`, new memory of any shape, with standard normal numbers, and returns it. With a
/// counting generator, contiguous float32 on the CPU gets numbers that are each a function of their
/// index and of 64 bits which the call takes: equal on every instruction set. In all other cases
/// the function calls normal_.
at::Tensor fill_normal(at::Tensor x, at::Generator& rng);

/// Fills `x` (float32 or float64) with uniform numbers in [low, high), and returns it. Counting
/// generators work as in fill_normal.
at::Tensor fill_uniform(at::Tensor x, at::Generator& rng, double low = 0, double high = 1);

}  // namespace crais
