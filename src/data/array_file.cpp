#include "data/array_file.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "core/spec.h"
#include "data/images.h"
#include "io/json.h"
#include "io/mnist_files.h"
#include "io/npy.h"
#include "io/safetensors.h"
#include "io/tensor_bytes.h"
#include "io/torch_file.h"
#include "io/zip.h"
#include "util/digest.h"
#include "util/error.h"
#include "util/files.h"
#include "util/suggest.h"

namespace crais {
namespace fs = std::filesystem;
namespace {

/// The place of an array: FILE, or FILE:KEY. A file's name may contain a colon: the longest
/// existing file name wins.
struct ArrayPlace {
  std::string file;
  std::optional<std::string> key;
};

ArrayPlace parse_place(const std::string& specification) {
  std::error_code ignored;
  for (size_t end = specification.size(); end != std::string::npos && end > 0;
       end = specification.rfind(':', end - 1)) {
    const std::string file = specification.substr(0, end);
    if (!fs::exists(file, ignored)) continue;
    if (end == specification.size()) return {file, {}};
    return {file, specification.substr(end + 1)};
  }
  return {specification, {}};
}

/// The chosen array among those of a file.
std::string chosen_key(const ArrayPlace& place, const std::vector<std::string>& names) {
  constexpr size_t kMaxShown = 24;
  if (names.empty()) throw data_error(place.file + ": holds no array");
  if (!place.key && names.size() == 1) return names.front();
  if (place.key && std::find(names.begin(), names.end(), *place.key) != names.end())
    return *place.key;
  if (names.size() == 1 && names.front().empty())
    throw argument_error(place.file +
                         ": holds one array without a name; leave out ':" + *place.key + "'");
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(names.size(), kMaxShown); ++i) shown.push_back(quoted(names[i]));
  if (names.size() > kMaxShown) shown.push_back(std::to_string(names.size() - kMaxShown) + " more");
  if (place.key)
    throw argument_error(place.file + ": has no array " + quoted(*place.key) +
                         "; those it has are " + join(shown) + did_you_mean(*place.key, names));
  throw argument_error(place.file + ": holds " + std::to_string(names.size()) +
                       " arrays; say which as " + place.file + ":KEY with one of " + join(shown));
}

void refuse_key(const ArrayPlace& place) {
  if (place.key) chosen_key(place, {""});
}

at::Tensor chosen_tensor(const ArrayPlace& place, const NamedTensors& tensors) {
  std::vector<std::string> names;
  names.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  const std::string key = chosen_key(place, names);
  return std::find_if(tensors.begin(), tensors.end(),
                      [&](const auto& named) { return named.first == key; })
      ->second;
}

/// Reads a file of numpy.savez: each array is an entry KEY.npy.
at::Tensor read_npz(const ArrayPlace& place, std::string_view bytes) {
  constexpr std::string_view kEnding = ".npy";
  ZipArchive archive(bytes, place.file);
  std::vector<std::string> names;
  for (const std::string& name : archive.names())
    if (name.size() > kEnding.size() && name.substr(name.size() - kEnding.size()) == kEnding)
      names.push_back(name.substr(0, name.size() - kEnding.size()));
  if (names.empty())
    throw data_error(place.file +
                     ": a zip archive, but neither numpy.savez nor torch.save wrote it");
  const std::string entry = chosen_key(place, names) + std::string(kEnding);
  return parse_npy(archive.read(entry), place.file + ": " + quoted(entry));
}

/// True if the bytes begin like IDX of unsigned bytes: 0, 0, 8, the number of dimensions.
bool is_idx(std::string_view bytes) {
  return bytes.substr(0, 3) == std::string_view("\0\0\x08", 3);
}

/// Reads a batch of CIFAR: rows of labels followed by 3 x 32 x 32 bytes. There is no magic number:
/// the size must fit, and every label must be valid.
bool read_cifar_into(ArrayFile& array, std::string_view bytes,
                     const std::vector<int64_t>& classes) {
  const auto labels = static_cast<int64_t>(classes.size()), row = labels + 3 * 32 * 32;
  const auto size = static_cast<int64_t>(bytes.size());
  if (size == 0 || size % row != 0) return false;
  const at::Tensor rows = tensor_of_bytes(bytes, {size / row, row}, at::kByte);
  for (int64_t i = 0; i < labels; ++i)
    if (rows.select(1, i).max().item<int64_t>() >= classes[static_cast<size_t>(i)]) return false;
  array.values = rows.slice(1, labels).reshape({-1, 3, 32, 32});
  array.labels =
      labels == 1 ? rows.select(1, 0).contiguous() : rows.slice(1, 0, labels).contiguous();
  return true;
}

void read_into(ArrayFile& array, const ArrayPlace& place, const std::string& bytes) {
  if (is_torch_file(bytes, place.file)) {
    array.values = chosen_tensor(place, parse_torch_file(bytes, place.file));
  } else if (is_zip(bytes)) {
    array.values = read_npz(place, bytes);
  } else if (is_safetensors(bytes)) {
    array.values = chosen_tensor(place, parse_safetensors(bytes, place.file).tensors);
  } else {
    refuse_key(place);
    const bool is_labels = bytes.substr(0, 4) == std::string_view("\0\0\x08\x01", 4);
    if (is_npy(bytes)) {
      array.values = parse_npy(bytes, place.file);
    } else if (is_labels) {
      array.values = read_idx_labels(place.file).values;
    } else if (is_idx(bytes)) {
      array.values = read_idx_images(place.file).values;
      array.labels = labels_beside(place.file, array.values.size(0));
    } else if (!read_cifar_into(array, bytes, {10}) && !read_cifar_into(array, bytes, {20, 100})) {
      throw data_error(place.file +
                       ": not a file of arrays; those read are .npy, .npz, safetensors, .pt of "
                       "torch.save, IDX and the binary batches of CIFAR-10 and CIFAR-100, each "
                       "also gzip-compressed");
    }
  }
}

}  // namespace

ArrayFile read_array_file(const std::string& specification) {
  const ArrayPlace place = parse_place(specification);
  std::string bytes = read_file(place.file);
  ArrayFile array;
  array.source = specification;
  array.digest = sha256(bytes);
  if (is_gzip(bytes)) bytes = gunzip(bytes, place.file);
  read_into(array, place, bytes);
  array.values = array.values.contiguous();
  if (array.values.dim() == 0 || array.values.numel() == 0)
    throw data_error(specification + ": " +
                     (array.values.dim() == 0 ? "a single number" : "an array without values") +
                     ", where an array of examples [N, ...] was expected");
  return array;
}

ArrayFile array_in_memory(const at::Tensor& values, const std::optional<at::Tensor>& labels,
                          const std::string& source) {
  const at::Tensor numbers = values.cpu().contiguous();
  const std::string_view bytes(static_cast<const char*>(numbers.data_ptr()), numbers.nbytes());
  return {numbers, labels, source, sha256(bytes)};
}

}  // namespace crais
