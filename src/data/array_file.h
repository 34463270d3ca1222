// Arrays of examples, from whatever file they lie in.
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <string>

namespace crais {

struct ArrayFile {
  at::Tensor values;                 // [N, ...], of the type and shape in the file
  std::optional<at::Tensor> labels;  // [N], or [N, 2] for CIFAR-100: coarse, fine
  std::string source;                // "FILE" or "FILE:KEY", as it was asked for
  std::string digest;                // sha256 of the file, or of the numbers in memory
};

/// The array in FILE, or the one that a file of several calls KEY ("FILE:KEY"). KEY can be left out
/// where there is one array.
///
/// What the file is follows from its content and never from its name: .npy and .npz, safetensors,
/// torch.save's .pt, IDX (the labels beside its images come along), the binary batches of CIFAR-10
/// and CIFAR-100 ([N, 3, 32, 32] with labels), each plain or gzip-compressed.
///
/// Throws Error: kNoInput if the file is missing; kArgument, listing what there is, if KEY is
/// missing or wrong; kData if the file is something else, damaged, or its array has no examples.
ArrayFile read_array_file(const std::string& specification);

/// Arrays that are here already, as a file of them would be; `source` names it in messages.
ArrayFile array_in_memory(const at::Tensor& values, const std::optional<at::Tensor>& labels,
                          const std::string& source);

}  // namespace crais
