#include "io/npy.h"

#include <c10/util/accumulate.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "io/json.h"
#include "io/tensor_bytes.h"
#include "util/error.h"

namespace crais {
namespace {

constexpr std::string_view kNpyMagic("\x93NUMPY", 6);
constexpr size_t kMaxNpyDims = 16;

struct NpyType {
  const char* code;
  at::ScalarType type;  // in memory
  size_t size;          // of a value in the file
};
const std::vector<NpyType> kNpyTypes = {
    {"b1", at::kBool, 1}, {"u1", at::kByte, 1},  {"i1", at::kChar, 1},  {"i2", at::kShort, 2},
    {"u2", at::kInt, 2},  {"i4", at::kInt, 4},   {"u4", at::kLong, 4},  {"i8", at::kLong, 8},
    {"f2", at::kHalf, 2}, {"f4", at::kFloat, 4}, {"f8", at::kDouble, 8}};

struct NpyHeader {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

/// Parses {'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }: the keys in any order, each
/// once, with spaces where Python allows them.
class NpyHeaderParser {
 public:
  NpyHeaderParser(std::string_view text, std::string where)
      : rest_(text), where_(std::move(where)) {}

  NpyHeader parse() {
    std::optional<std::string> descr;
    std::optional<bool> fortran_order;
    std::optional<std::vector<int64_t>> shape;
    expect('{');
    while (!accept('}')) {
      const std::string key = text();
      expect(':');
      if (key == "descr" && !descr)
        descr = text();
      else if (key == "fortran_order" && !fortran_order)
        fortran_order = truth();
      else if (key == "shape" && !shape)
        shape = sizes();
      else
        throw wrong("key " + quoted(key) + " is unknown or given twice");
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (!rest_.empty()) throw wrong("something follows its end");
    if (!descr || !fortran_order || !shape)
      throw wrong("it needs the keys 'descr', 'fortran_order' and 'shape'");
    return {*descr, *fortran_order, *shape};
  }

 private:
  Error wrong(const std::string& what) const {
    return data_error(where_ + ": header of the .npy file: " + what);
  }
  void skip_spaces() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n"), rest_.size()));
  }
  bool accept(char c) {
    skip_spaces();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c))
      throw wrong(std::string("'") + c + "' was expected before " +
                  quoted(std::string(rest_.substr(0, 20))));
  }
  bool accept_word(std::string_view word) {
    skip_spaces();
    if (rest_.substr(0, word.size()) != word) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  std::string text() {
    skip_spaces();
    const char quote = rest_.empty() ? '\0' : rest_.front();
    const size_t end =
        quote == '\'' || quote == '"' ? rest_.find(quote, 1) : std::string_view::npos;
    if (end == std::string_view::npos)
      throw wrong("a text in quotes was expected before " +
                  quoted(std::string(rest_.substr(0, 20))) + "; records are not read");
    std::string value(rest_.substr(1, end - 1));
    if (value.find('\\') != std::string::npos) throw wrong("a text has an escape");
    rest_.remove_prefix(end + 1);
    return value;
  }
  bool truth() {
    if (accept_word("True")) return true;
    if (accept_word("False")) return false;
    throw wrong("'fortran_order' is neither True nor False");
  }
  std::vector<int64_t> sizes() {
    std::vector<int64_t> sizes;
    expect('(');
    while (!accept(')')) {
      sizes.push_back(size());
      accept_word("L");  // how Python 2 wrote some
      if (accept(',')) continue;
      // (3) is a number in brackets and no tuple.
      if (sizes.size() == 1) throw wrong("'shape' is no tuple");
      expect(')');
      break;
    }
    if (sizes.size() > kMaxNpyDims)
      throw wrong("'shape' has over " + std::to_string(kMaxNpyDims) + " dimensions");
    return sizes;
  }
  int64_t size() {
    skip_spaces();
    size_t digits = 0;
    int64_t value = 0;
    for (; digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9'; ++digits)
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, rest_[digits] - '0', &value))
        throw wrong("a size in 'shape' is too large");
    if (digits == 0) throw wrong("a size in 'shape' is no whole number");
    rest_.remove_prefix(digits);
    return value;
  }

  std::string_view rest_;
  std::string where_;
};

/// Magic, version, the length of the header and the header; what is left are the values.
NpyHeader take_header(std::string_view& bytes, const std::string& where) {
  if (!is_npy(bytes)) throw data_error(where + ": not a .npy file");
  const auto byte_at = [&](size_t i) { return size_t{static_cast<unsigned char>(bytes[i])}; };
  const size_t version = bytes.size() > 7 ? byte_at(6) : 1;
  if (version < 1 || version > 3)
    throw data_error(where + ": .npy format " + std::to_string(version) + "; 1 to 3 are read");
  const size_t start = version == 1 ? 10 : 12;
  if (bytes.size() < start) throw data_error(where + ": truncated within the header of .npy");
  size_t length = 0;
  for (size_t i = start; i-- > 8;) length = length << 8 | byte_at(i);
  if (length > bytes.size() - start)
    throw data_error(where + ": truncated: the .npy header has " + std::to_string(length) +
                     " bytes, the file only " + std::to_string(bytes.size() - start) + " more");
  const std::string_view text = bytes.substr(start, length);
  bytes.remove_prefix(start + length);
  return NpyHeaderParser(text, where).parse();
}

const NpyType& npy_type(const std::string& descr, const std::string& where) {
  for (const NpyType& known : kNpyTypes)
    if (descr.size() == 3 && std::string_view("<>|=").find(descr[0]) != std::string_view::npos &&
        descr.compare(1, 2, known.code) == 0)
      return known;
  std::string codes;
  for (const NpyType& known : kNpyTypes)
    codes += std::string(codes.empty() ? "" : ", ") + known.code;
  throw data_error(where + ": values of type " + quoted(descr) + "; those read are " + codes);
}

std::string reversed_values(std::string_view bytes, size_t size) {
  std::string swapped(bytes);
  for (size_t i = 0; i + size <= swapped.size(); i += size)
    std::reverse(swapped.begin() + static_cast<std::ptrdiff_t>(i),
                 swapped.begin() + static_cast<std::ptrdiff_t>(i + size));
  return swapped;
}

/// Little-endian values of a type of the file; 16 or 32 bits without a sign go to the next larger.
at::Tensor npy_values(std::string_view bytes, const NpyType& type, at::IntArrayRef shape) {
  if (c10::elementSize(type.type) == type.size) return tensor_of_bytes(bytes, shape, type.type);
  const at::Tensor values =
      tensor_of_bytes(bytes, shape, type.size == 2 ? at::kShort : at::kInt).to(type.type);
  return values.bitwise_and((int64_t{1} << 8 * type.size) - 1);
}

std::vector<int64_t> reversed_axes(int64_t count) {
  std::vector<int64_t> axes;
  for (int64_t axis = count; axis-- > 0;) axes.push_back(axis);
  return axes;
}

uint64_t npy_bytes(const std::vector<int64_t>& shape, size_t size, const std::string& where) {
  uint64_t bytes = size, extent = size;  // the second as if no size were 0, for the strides
  for (const int64_t s : shape) {
    bytes *= static_cast<uint64_t>(s);
    if (__builtin_mul_overflow(extent, static_cast<uint64_t>(std::max<int64_t>(s, 1)), &extent) ||
        extent > static_cast<uint64_t>(INT64_MAX))
      throw data_error(where + ": the shape of the .npy file overflows");
  }
  return bytes;
}

}  // namespace

namespace {

/// All that stands before the values of `type`.
std::string npy_header(const std::string& type, at::IntArrayRef shape) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  constexpr size_t kPreamble = 10, kAlignment = 64;  // magic, version and length; of the data
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (";
  for (const int64_t size : shape) header += std::to_string(size) + ", ";
  header += "), }";
  while ((kPreamble + header.size() + 1) % kAlignment != 0) header += ' ';
  header += '\n';
  std::string text = "\x93NUMPY";
  text += '\x01';
  text += '\0';
  text += static_cast<char>(header.size() & 0xff);
  text += static_cast<char>(header.size() >> 8);
  return text + header;
}

}  // namespace

std::string npy_text(const std::vector<int64_t>& shape, const std::vector<double>& values) {
  if (c10::multiply_integers(shape) != static_cast<int64_t>(values.size()))
    throw internal_error("an array whose shape is not its size");
  std::string text = npy_header("<f8", shape);
  const size_t begin = text.size();
  text.resize(begin + values.size() * sizeof(double));
  if (!values.empty())
    std::memcpy(text.data() + begin, values.data(), values.size() * sizeof(double));
  return text;
}

std::string npy_text(const at::Tensor& bytes) {
  const at::Tensor rows = bytes.to(at::kByte).contiguous();
  return npy_header("|u1", rows.sizes())
      .append(static_cast<const char*>(rows.data_ptr()), rows.nbytes());
}

bool is_npy(std::string_view bytes) { return bytes.substr(0, kNpyMagic.size()) == kNpyMagic; }

at::Tensor parse_npy(std::string_view bytes, const std::string& where) {
  NpyHeader header = take_header(bytes, where);
  const NpyType& type = npy_type(header.descr, where);
  const uint64_t expected = npy_bytes(header.shape, type.size, where);
  if (bytes.size() != expected)
    throw data_error(where + ": shape and type of the .npy file need " + std::to_string(expected) +
                     " bytes of values, " + std::to_string(bytes.size()) + " are there");
  if (header.fortran_order) std::reverse(header.shape.begin(), header.shape.end());
  std::string swapped;
  if (header.descr[0] == '>') bytes = swapped = reversed_values(bytes, type.size);
  const at::Tensor values = npy_values(bytes, type, header.shape);
  return header.fortran_order ? values.permute(reversed_axes(values.dim())).contiguous() : values;
}

}  // namespace crais
