// Arrays of examples from files of any supported format.
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <string>

namespace crais {

struct ArrayFile {
  at::Tensor values;                 // [N, ...], of the type and shape in the file
  std::optional<at::Tensor> labels;  // [N]
  std::string source;                // "FILE" or "FILE:KEY", as the caller wrote it
  std::string digest;                // sha256 of the file, or of the numbers in memory
};

/// The array in FILE; in a file with several arrays, the one named KEY ("FILE:KEY").
///
/// The content decides the format; the name does not count. Formats: .npy and .npz, IDX (with the
/// labels beside its images). Each may be plain or compressed by gzip.
///
/// Throws Error: kNoInput if the file is missing; kArgument that lists the keys if KEY is missing
/// or wrong; kData if the file has another format or is damaged, or if its array has no examples.
ArrayFile read_array_file(const std::string& specification);

/// Arrays in memory, as if read from a file; `source` names them in messages.
ArrayFile array_in_memory(const at::Tensor& values, const std::optional<at::Tensor>& labels,
                          const std::string& source);

}  // namespace crais
