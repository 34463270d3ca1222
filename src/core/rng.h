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
};

/// One step of SplitMix64: a bijective mix of 64 bits (Steele, Lea & Flood 2014).
uint64_t mix64(uint64_t x);

/// The seed of stream `index` (a chunk, an epoch, an image) of `purpose` under the user's `seed`.
uint64_t derive_seed(uint64_t seed, Purpose purpose, uint64_t index = 0);

/// A uniform number in [0, 1) that depends on (seed, index) alone: the same on every machine and
/// LibTorch. For data that must never change, such as a static binarisation.
double hashed_uniform(uint64_t seed, uint64_t index);

/// A fresh generator on `device`, seeded; the global generators are not touched.
at::Generator make_generator(uint64_t seed, at::Device device = at::kCPU);

}  // namespace crais
