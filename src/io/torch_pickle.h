// The pickle within a file of torch.save, taken apart without running any of it.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace crais {

/// A value of a pickle. `at` is the number itself, or a place in one of TorchPickle's lists.
struct PickleValue {
  enum class Kind : uint8_t {
    kOpaque,   // a float, a truth value, None, bytes, a dtype: nothing that tensors are made of
    kInteger,  // at: the number
    kText,     // at, length: where it lies in the pickle
    kGlobal,   // at: which of the names that are allowed
    kTuple,    // at: of sequences
    kList,     // at: of sequences
    kDict,     // at: of sequences; key, value, key, value, ...
    kStorage,  // at: of storages
    kTensor,   // at: of tensors
  };
  Kind kind = Kind::kOpaque;
  uint32_t length = 0;
  int64_t at = 0;
};

/// Memory that tensors are views of: the entry data/KEY of the archive.
struct PickledStorage {
  std::string_view key;
  at::ScalarType dtype;
  int64_t count;  // of elements
};

/// A view as the file describes it: nothing is checked but that these are whole numbers.
struct PickledTensor {
  int64_t storage;  // of storages
  int64_t offset;   // in elements
  int64_t sizes;    // of sequences
  int64_t strides;  // of sequences
};

/// Values refer to each other by number, so that neither depth nor circles cost anything here.
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

/// Reads a pickle of protocol 2, which the caller keeps.
///
/// A pickle is a program. This machine knows the opcodes that build dictionaries, lists, numbers
/// and texts, and the handful of functions that torch.save names to make tensors of these; none of
/// them is called. Throws Error kData, one line that begins with `where`, at anything else.
TorchPickle parse_torch_pickle(std::string_view bytes, const std::string& where);

}  // namespace crais
