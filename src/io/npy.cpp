#include "io/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <numeric>
#include <regex>

#include "io/json.h"
#include "io/tensor_bytes.h"
#include "util/error.h"

namespace crais {
namespace {

constexpr std::string_view kNpyMagic("\x93NUMPY", 6);
constexpr size_t kMaxNpyDims = 16;
constexpr size_t kMaxNpyHeader = 1000;  // the sizes of an array fill less than half of it

struct NpyType {
  const char* code;
  at::ScalarType type;  // in memory
  size_t size;          // bytes of a value in the file
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

/// Parses {'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }. The keys come in any order,
/// each once, with spaces where Python allows them. Sizes written by Python 2 may end in L.
NpyHeader parse_header(const std::string& text, const std::string& where) {
  static const std::regex kEntry(
      R"(\s*(['"])(\w+)\1\s*:\s*((['"])([^'"\\]*)\4|True|False)"
      R"(|\((\s*|(?:\s*\d+L?\s*,)+(?:\s*\d+L?)?\s*)\))\s*(,\s*\}?|\})\s*)");
  static const std::regex kSize(R"(\d+)");
  const auto require = [&](bool holds, const std::string& what) {
    if (!holds) throw data_error(where, ": header of the .npy file: ", what);
  };
  std::map<std::string, std::string> values;  // raw text by key; of the shape, the part within ()
  auto begin = text.begin() + static_cast<std::ptrdiff_t>(text.find_first_not_of(" \t\n") + 1);
  bool has_ended = begin == text.begin() || *(begin - 1) != '{' || text.size() > kMaxNpyHeader;
  for (std::smatch entry; !has_ended && std::regex_search(begin, text.end(), entry, kEntry,
                                                          std::regex_constants::match_continuous);
       begin = entry[0].second) {
    const std::string key = entry[2];
    const bool is_text = entry[5].matched, is_shape = entry[6].matched;
    if ((key == "descr") != is_text || (key == "shape") != is_shape) break;
    const size_t value = is_text ? 5 : is_shape ? 6 : 3;
    require(values.emplace(key, entry[value]).second, "key " + quoted(key) + " is given twice");
    has_ended = entry[7].str().back() == '}';
  }
  require(
      has_ended && begin == text.end() && values.size() == 3 && values.count("fortran_order"),
      "not {'descr': 'TYPE', 'fortran_order': True or False, 'shape': (SIZE, ...)}; records are "
      "not read");
  const std::string& sizes = values["shape"];
  std::vector<int64_t> shape;
  for (std::sregex_iterator size(sizes.begin(), sizes.end(), kSize), end; size != end; ++size) {
    const std::string digits = size->str();
    int64_t value = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    require(read.ec == std::errc(), "a size in 'shape' is too large");
    shape.push_back(value);
  }
  require(shape.size() <= kMaxNpyDims,
          "'shape' has over " + std::to_string(kMaxNpyDims) + " dimensions");
  return {values["descr"], values["fortran_order"] == "True", shape};
}

/// Takes magic, version, header length and header from `bytes`, and leaves the values.
NpyHeader take_header(std::string_view& bytes, const std::string& where) {
  if (!is_npy(bytes)) throw data_error(where, ": not a .npy file");
  const size_t version = bytes.size() > 7 ? number_of_bytes(bytes.substr(6, 1)) : 1;
  if (version < 1 || version > 3)
    throw data_error(where, ": .npy format ", version, "; 1 to 3 are read");
  const size_t start = version == 1 ? 10 : 12;
  if (bytes.size() < start) throw data_error(where, ": truncated within the header of .npy");
  const size_t length = number_of_bytes(bytes.substr(8, start - 8));
  if (length > bytes.size() - start)
    throw data_error(where, ": truncated: the .npy header has ", length, " bytes, the file only ",
                     bytes.size() - start, " more");
  const std::string_view text = bytes.substr(start, length);
  bytes.remove_prefix(start + length);
  return parse_header(std::string(text), where);
}

const NpyType& npy_type(const std::string& descr, const std::string& where) {
  for (const NpyType& known : kNpyTypes)
    if (descr.size() == 3 && std::string_view("<|=").find(descr[0]) != std::string_view::npos &&
        descr.compare(1, 2, known.code) == 0)
      return known;
  std::string codes;
  for (const NpyType& known : kNpyTypes)
    codes += std::string(codes.empty() ? "" : ", ") + known.code;
  throw data_error(where, ": values of type ", quoted(descr), "; those read are ", codes,
                   ", little-endian");
}

/// Little-endian values of a type of the file. Unsigned numbers of 16 and 32 bits become the next
/// larger signed type.
at::Tensor npy_values(std::string_view bytes, const NpyType& type, at::IntArrayRef shape) {
  if (c10::elementSize(type.type) == type.size) return tensor_of_bytes(bytes, shape, type.type);
  const at::Tensor values =
      tensor_of_bytes(bytes, shape, type.size == 2 ? at::kShort : at::kInt).to(type.type);
  return values.bitwise_and((int64_t{1} << 8 * type.size) - 1);
}

/// Everything before the values of `type`.
std::string npy_header(const std::string& type, at::IntArrayRef shape) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  constexpr size_t kPreamble = 10, kAlignment = 64;  // bytes: magic, version, length; of the data
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (";
  for (const int64_t size : shape) header += std::to_string(size) + ", ";
  header += "), }";
  while ((kPreamble + header.size() + 1) % kAlignment != 0) header += ' ';
  header += '\n';
  std::string text(kNpyMagic);
  text += {'\x01', '\0'};
  text += static_cast<char>(header.size() & 0xff);
  text += static_cast<char>(header.size() >> 8);
  return text + header;
}

}  // namespace

std::string npy_text(const at::Tensor& values) {
  const at::Tensor rows = values.contiguous();
  return npy_header(rows.scalar_type() == at::kDouble ? "<f8" : "|u1", rows.sizes())
      .append(static_cast<const char*>(rows.data_ptr()), rows.nbytes());
}

bool is_npy(std::string_view bytes) { return bytes.substr(0, kNpyMagic.size()) == kNpyMagic; }

at::Tensor parse_npy(std::string_view bytes, const std::string& where) {
  NpyHeader header = take_header(bytes, where);
  const NpyType& type = npy_type(header.descr, where);
  const auto expected = bytes_of_shape(header.shape, type.size);
  if (!expected) throw data_error(where, ": the shape of the .npy file overflows");
  if (bytes.size() != *expected)
    throw data_error(where, ": shape and type of the .npy file need ", *expected,
                     " bytes of values, ", bytes.size(), " are there");
  if (header.fortran_order) std::reverse(header.shape.begin(), header.shape.end());
  const at::Tensor values = npy_values(bytes, type, header.shape);
  if (!header.fortran_order) return values;
  std::vector<int64_t> axes(header.shape.size());
  std::iota(axes.rbegin(), axes.rend(), 0);
  return values.permute(axes).contiguous();
}

}  // namespace crais
