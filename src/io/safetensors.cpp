#include "io/safetensors.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "io/json.h"
#include "io/tensor_bytes.h"
#include "util/error.h"
#include "util/files.h"

namespace crais {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxHeader = 100'000'000;
constexpr size_t kPrefix = 8;  // bytes of the header's length
constexpr size_t kMaxDims = 16;

const std::vector<std::pair<std::string, at::ScalarType>> kDtypes = {
    {"F64", at::kDouble}, {"I64", at::kLong}, {"F32", at::kFloat}, {"U8", at::kByte}};

const std::string& dtype_name(at::ScalarType dtype) {
  for (const auto& [name, known] : kDtypes)
    if (known == dtype) return name;
  throw internal_error("safetensors: cannot store a tensor of type ", at::toString(dtype));
}

std::string dtype_names() {
  std::string names;
  for (const auto& [name, dtype] : kDtypes) names += (names.empty() ? "" : ", ") + name;
  return names;
}

/// The checked position of one tensor in the data.
struct Entry {
  std::string name;
  at::ScalarType dtype;
  std::vector<int64_t> shape;
  uint64_t begin;
  uint64_t end;
};

uint64_t unsigned_number(const json& value, const std::string& where, const char* what) {
  // nlohmann calls a number unsigned if it has no sign, point or exponent and fits into 64 bits.
  if (!value.is_number_unsigned())
    throw data_error(where, ": ", what, " is not a non-negative whole number");
  return value.get<uint64_t>();
}

std::vector<int64_t> checked_shape(const json& value, const std::string& where) {
  if (!value.is_array() || value.size() > kMaxDims)
    throw data_error(where, ": shape is not a list of at most ", kMaxDims, " sizes");
  std::vector<int64_t> shape;
  for (const json& size : value) {
    const uint64_t number = unsigned_number(size, where, "a size in its shape");
    if (number > INT64_MAX) throw data_error(where, ": its shape overflows");
    shape.push_back(static_cast<int64_t>(number));
  }
  return shape;
}

Entry checked_entry(const std::string& name, const json& value, uint64_t data_size,
                    const std::string& file) {
  const std::string where = file + ": tensor " + quoted(name);
  if (!value.is_object()) throw data_error(where, " is not described by an object");
  for (const auto& [key, ignored] : value.items())
    if (key != "dtype" && key != "shape" && key != "data_offsets")
      throw data_error(where, ": unknown key ", quoted(key));
  for (const char* key : {"dtype", "shape", "data_offsets"})
    if (!value.contains(key)) throw data_error(where, ": has no ", key);

  const json& dtype = value["dtype"];
  const auto known = std::find_if(kDtypes.begin(), kDtypes.end(), [&](const auto& candidate) {
    return dtype.is_string() && dtype.get_ref<const std::string&>() == candidate.first;
  });
  if (known == kDtypes.end())
    throw data_error(where, ": dtype ", quoted(dtype.is_string() ? dtype.get<std::string>() : ""),
                     " is not one of ", dtype_names());

  const json& offsets = value["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2)
    throw data_error(where, ": data_offsets are not two numbers");
  Entry entry{name, known->second, checked_shape(value["shape"], where),
              unsigned_number(offsets[0], where, "its begin"),
              unsigned_number(offsets[1], where, "its end")};
  if (entry.begin > entry.end || entry.end > data_size)
    throw data_error(where, ": data_offsets [", entry.begin, ", ", entry.end, "] lie outside the ",
                     data_size, " bytes of data");
  const auto expected = bytes_of_shape(entry.shape, c10::elementSize(entry.dtype));
  if (!expected) throw data_error(where, ": its shape overflows");
  if (entry.end - entry.begin != *expected)
    throw data_error(where, ": holds ", entry.end - entry.begin,
                     " bytes, its shape and dtype need ", *expected);
  return entry;
}

/// Checks that every byte of data belongs to exactly one tensor.
void check_tiling(std::vector<Entry> entries, uint64_t data_size, const std::string& where) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t covered = 0;
  for (const Entry& entry : entries) {
    if (entry.begin < covered)
      throw data_error(where, ": tensor ", quoted(entry.name), " overlaps another");
    if (entry.begin > covered)
      throw data_error(where, ": a hole of ", entry.begin - covered, " bytes before tensor ",
                       quoted(entry.name));
    covered = entry.end;
  }
  if (covered != data_size)
    throw data_error(where, ": ", data_size - covered,
                     " bytes after the last tensor belong to none");
}

std::map<std::string, std::string> checked_metadata(const json& value, const std::string& where) {
  if (!value.is_object()) throw data_error(where, ": __metadata__ is not an object");
  std::map<std::string, std::string> metadata;
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string())
      throw data_error(where, ": __metadata__ ", quoted(key), " is not a string");
    metadata[key] = text.get<std::string>();
  }
  return metadata;
}

uint64_t header_length(std::string_view bytes, const std::string& where) {
  if (bytes.size() < kPrefix)
    throw data_error(where, ": ", bytes.size(), " bytes are too few for a safetensors file");
  const uint64_t length = number_of_bytes(bytes.substr(0, kPrefix));
  if (length > kMaxHeader)
    throw data_error(where, ": not a safetensors file (a header of ", length, " bytes; at most ",
                     kMaxHeader, " are allowed)");
  if (length > bytes.size() - kPrefix)
    throw data_error(where, ": truncated: the header has ", length, " bytes, the file only ",
                     bytes.size() - kPrefix, " after the length");
  return length;
}

}  // namespace

bool is_safetensors(std::string_view bytes) {
  return bytes.size() > kPrefix && bytes[kPrefix] == '{' && bytes.substr(5, 3) == std::string(3, 0);
}

const at::Tensor* SafeTensors::find(const std::string& name) const {
  for (const auto& [known, tensor] : tensors)
    if (known == name) return &tensor;
  return nullptr;
}

SafeTensors parse_safetensors(std::string_view bytes, const std::string& where) {
  const uint64_t length = header_length(bytes, where);
  const json header = parse_json(bytes.substr(kPrefix, length), where + ": header");
  if (!header.is_object()) throw data_error(where, ": the header is not a JSON object");
  const std::string_view data = bytes.substr(kPrefix + length);

  SafeTensors content;
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__")
      content.metadata = checked_metadata(value, where);
    else
      entries.push_back(checked_entry(name, value, data.size(), where));
  }
  check_tiling(entries, data.size(), where);
  for (const Entry& entry : entries) {
    const at::Tensor tensor = tensor_of_bytes(data.substr(entry.begin, entry.end - entry.begin),
                                              entry.shape, entry.dtype);
    content.tensors.emplace_back(entry.name, tensor);
  }
  return content;
}

std::string serialise_safetensors(const SafeTensors& content) {
  auto tensors = content.tensors;
  for (auto& [name, tensor] : tensors) tensor = tensor.detach().to(at::kCPU).contiguous();
  // Wide elements come first: every tensor is then aligned to its elements.
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return a.second.element_size() > b.second.element_size();
  });
  json header = json::object();
  if (!content.metadata.empty()) header["__metadata__"] = content.metadata;
  uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    if (name == "__metadata__" || header.contains(name))
      throw internal_error("safetensors: the name ", quoted(name), " is taken");
    const uint64_t end = offset + tensor.nbytes();
    header[name] = {{"dtype", dtype_name(tensor.scalar_type())},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.append((kPrefix - text.size() % kPrefix) % kPrefix, ' ');

  std::string bytes;
  bytes.reserve(kPrefix + text.size() + offset);
  for (size_t i = 0; i < kPrefix; ++i)
    bytes += static_cast<char>(static_cast<unsigned char>(text.size() >> (8 * i)));
  bytes += text;
  for (const auto& [name, tensor] : tensors)
    if (tensor.nbytes() > 0)
      bytes.append(static_cast<const char*>(tensor.data_ptr()), tensor.nbytes());
  return bytes;
}

SafeTensors read_safetensors(const std::filesystem::path& path) {
  return parse_safetensors(read_file(path), path.string());
}

void write_safetensors(const std::filesystem::path& path, const SafeTensors& content) {
  write_file_atomic(path, serialise_safetensors(content));
}

}  // namespace crais
