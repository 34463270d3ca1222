// What torch.save writes, read without running any of it.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace crais {

/// In the order of their file.
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// True if the bytes are a file of PyTorch, one that parse_torch_file refuses included
/// (TorchScript, the format before PyTorch 1.6). Throws Error kData if they are a damaged zip
/// archive.
bool is_torch_file(std::string_view bytes, const std::string& where);

/// The tensors that torch.save wrote, on the CPU, views of one memory where they were.
/// Dictionaries, lists and tuples within each other give names with dots: {"model": {"fc.bias": b},
/// "epoch": 3} is "model.fc.bias"; what is no tensor is passed over. A tensor alone has the name
/// "".
///
/// The pickle inside is a program; it is not run (io/torch_pickle.h). Names, sizes, strides and
/// offsets are checked before any of them is used. Throws Error kData, one line that begins with
/// `where`, at anything that is not plain tensors.
NamedTensors parse_torch_file(std::string_view bytes, const std::string& where);

}  // namespace crais
