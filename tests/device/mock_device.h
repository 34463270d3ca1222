// A device that is not the CPU, on the CPU: what --device cuda asks of the code, tested without a
// GPU.
//
// Its tensors are LibTorch's private use. Their addresses are not the host's: whoever reads
// device memory from the host crashes, as with a GPU. An operation on tensors of both is an error,
// as with a GPU. Operations themselves are the CPU's.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>

#include "samplers/mover.h"

namespace crais::testing {

/// Makes the device known to LibTorch, once a process.
void make_mock_device();

at::Device mock_device();

/// While it lives, the device's normal and uniform numbers are those that fill_normal and
/// fill_uniform draw on the CPU from a counting generator, so that chains can be compared.
class CountedNumbers {
 public:
  CountedNumbers();
  ~CountedNumbers();
  CountedNumbers(const CountedNumbers&) = delete;
  CountedNumbers& operator=(const CountedNumbers&) = delete;
};

/// How often the host has waited for the device: numbers and tensors it has read.
int64_t num_waits();

/// What a CUDA graph is to CUDA: recording computes nothing that stays, a replay runs the same
/// operations on the same memory. An operation that waits for the device is an error in between.
std::unique_ptr<Recorder> make_mock_recorder(at::Generator& rng);

}  // namespace crais::testing
