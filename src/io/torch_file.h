// Files of torch.save, read without running the pickle in them.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace crais {

/// Tensors with their names, in the order of the file.
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// True if the bytes are a file of PyTorch, including those that parse_torch_file rejects
/// (TorchScript, the format before PyTorch 1.6). Throws Error kData if they are a damaged zip
/// archive.
bool is_torch_file(std::string_view bytes, const std::string& where);

/// The tensors that torch.save wrote, on the CPU. Views of one memory stay views of one memory.
/// Nested dictionaries, lists and tuples give names with dots: {"model": {"fc.bias": b}, "epoch":
/// 3} gives "model.fc.bias". Values other than tensors are skipped. A single tensor has the name
/// "".
///
/// The pickle inside is a program, and is not run (io/torch_pickle.h). Names, sizes, strides and
/// offsets are checked before any of them is used. Throws Error kData, one line that begins with
/// `where`, for everything but plain tensors.
NamedTensors parse_torch_file(std::string_view bytes, const std::string& where);

}  // namespace crais
