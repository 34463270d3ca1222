#include "io/npy.h"

#include <cstring>

#include "util/error.h"

namespace crais {

std::string npy_text(const std::vector<int64_t>& shape, const std::vector<double>& values) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  constexpr size_t kPreamble = 10, kAlignment = 64;  // magic, version and length; of the data
  size_t places = 1;
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (";
  for (const int64_t size : shape) {
    places *= static_cast<size_t>(size);
    header += std::to_string(size) + ", ";
  }
  header += "), }";
  if (places != values.size()) throw internal_error("an array whose shape is not its size");
  while ((kPreamble + header.size() + 1) % kAlignment != 0) header += ' ';
  header += '\n';
  std::string text = "\x93NUMPY";
  text += '\x01';
  text += '\0';
  text += static_cast<char>(header.size() & 0xff);
  text += static_cast<char>(header.size() >> 8);
  text += header;
  const size_t begin = text.size();
  text.resize(begin + values.size() * sizeof(double));
  if (!values.empty())
    std::memcpy(text.data() + begin, values.data(), values.size() * sizeof(double));
  return text;
}

}  // namespace crais
