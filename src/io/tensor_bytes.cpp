#include "io/tensor_bytes.h"

#include <algorithm>
#include <cstring>

#include "util/error.h"

namespace crais {

std::optional<uint64_t> bytes_of_shape(at::IntArrayRef shape, uint64_t element_size) {
  auto extent = static_cast<int64_t>(element_size);
  for (const int64_t size : shape)
    if (__builtin_mul_overflow(extent, std::max<int64_t>(size, 1), &extent)) return {};
  const bool is_empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  return is_empty ? 0 : static_cast<uint64_t>(extent);
}

at::Tensor tensor_of_bytes(std::string_view bytes, at::IntArrayRef shape, at::ScalarType type) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  const bool truth = type == at::kBool;
  const at::Tensor tensor = at::empty(shape, truth ? at::kByte : type);
  if (tensor.nbytes() != bytes.size()) throw internal_error("a tensor of other bytes than its own");
  if (!bytes.empty()) std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
  return truth ? tensor.ne(0) : tensor;
}

uint64_t number_of_bytes(std::string_view bytes, bool is_big) {
  uint64_t number = 0;
  for (size_t i = 0; i < bytes.size(); ++i)
    number = number << 8 | static_cast<unsigned char>(bytes[is_big ? i : bytes.size() - 1 - i]);
  return number;
}

}  // namespace crais
