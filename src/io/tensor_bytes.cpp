#include "io/tensor_bytes.h"

#include <cstring>

#include "util/error.h"

namespace crais {

at::Tensor tensor_of_bytes(std::string_view bytes, at::IntArrayRef shape, at::ScalarType type) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  const bool truth = type == at::kBool;
  const at::Tensor tensor = at::empty(shape, truth ? at::kByte : type);
  if (tensor.nbytes() != bytes.size()) throw internal_error("a tensor of other bytes than its own");
  if (!bytes.empty()) std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
  return truth ? tensor.ne(0) : tensor;
}

}  // namespace crais
