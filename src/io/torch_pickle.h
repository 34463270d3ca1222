// Reads the pickle in a file of torch.save without running any of it.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace crais {

/// A value of a pickle. `at` is the number itself, or an index into one of TorchPickle's lists.
struct PickleValue {
  enum class Kind : uint8_t {
    kOpaque,   // a float, a bool, None, bytes, a dtype: values that tensors are not made of
    kInteger,  // at: the number
    kText,     // at, length: its range in the pickle
    kGlobal,   // at: index of an allowed name
    kTuple,    // at: index into sequences
    kList,     // at: index into sequences
    kDict,     // at: index into sequences; key, value, key, value, ...
    kStorage,  // at: index into storages
    kTensor,   // at: index into tensors
  };
  Kind kind = Kind::kOpaque;
  uint32_t length = 0;
  int64_t at = 0;
};

/// Memory that tensors are views of: the entry data/KEY of the archive.
struct PickledStorage {
  std::string_view key;
  at::ScalarType dtype;
  int64_t count;  // elements
};

/// A view as the file describes it. Checked only: its fields are whole numbers.
struct PickledTensor {
  int64_t storage;  // index into storages
  int64_t offset;   // in elements
  int64_t sizes;    // index into sequences
  int64_t strides;  // index into sequences
};

/// A parsed pickle. Values refer to each other by index, so depth and cycles cost nothing here.
struct TorchPickle {
  std::string_view bytes;
  PickleValue root;
  std::vector<std::vector<PickleValue>> sequences;
  std::vector<PickledStorage> storages;
  std::vector<PickledTensor> tensors;

  const std::vector<PickleValue>& items(const PickleValue& value) const {
    return sequences[static_cast<size_t>(value.at)];
  }
  std::string_view text(const PickleValue& value) const {
    return bytes.substr(static_cast<size_t>(value.at), value.length);
  }
};

/// Reads a pickle of protocol 2. The caller keeps the bytes.
///
/// A pickle is a program. This machine knows the opcodes that build dictionaries, lists, numbers
/// and texts, and the few functions that torch.save names to make tensors from them; it calls none
/// of these functions. Throws Error kData, one line that begins with `where`, for everything else.
TorchPickle parse_torch_pickle(std::string_view bytes, const std::string& where);

}  // namespace crais
