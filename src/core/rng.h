/// @file
/// Random numbers: explicit generators, each seeded from what it is for. No global state.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace crais {

/// What a stream of random numbers is for. Two purposes never share a stream.
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
  kChains = 13,
  kWitness = 14,
  kRound = 15,
};

/// One step of SplitMix64: a bijective mix of 64 bits (Steele, Lea & Flood 2014).
uint64_t mix64(uint64_t x);

/// The seed of stream `index` (a chunk, an epoch, an image) of `purpose` under the user's `seed`.
uint64_t derive_seed(uint64_t seed, Purpose purpose, uint64_t index = 0);

/// A uniform number in [0, 1) that depends on (seed, index) alone: the same on every machine and
/// LibTorch. For data that must never change, such as a static binarisation.
double hashed_uniform(uint64_t seed, uint64_t index);

/// Version of the numbers that chains draw, which a result is recorded with. Those of a version
/// that has been released never change.
constexpr int kStreamVersion = 2;

/// A fresh generator on `device`, seeded; the global generators are not touched.
at::Generator make_generator(uint64_t seed, at::Device device = at::kCPU);

/// The same, for chains: fill_normal and fill_uniform draw their own numbers from it, several times
/// as fast as LibTorch's. LibTorch's functions draw what they draw from any.
at::Generator make_counting_generator(uint64_t seed, at::Device device = at::kCPU);

/// Fills `x`, fresh memory of any shape, with standard normal numbers, and returns it. A counting
/// generator fills contiguous float32 on the CPU with numbers of its own, each a function of 64
/// bits that the call takes and of its index: the same on every instruction set. In all other cases
/// this is normal_.
at::Tensor fill_normal(at::Tensor x, at::Generator& rng);

/// The same with uniform numbers in [low, high), of float32 or float64.
at::Tensor fill_uniform(at::Tensor x, at::Generator& rng, double low = 0, double high = 1);

}  // namespace crais
