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
#include "io/zip.h"
#include "util/digest.h"
#include "util/error.h"
#include "util/files.h"
#include "util/suggest.h"

namespace crais {
namespace fs = std::filesystem;
namespace {

constexpr const char* kHowToWrite = "; in Python, numpy.save(\"x.npy\", x.numpy()) writes one";

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
  if (names.empty()) throw data_error(place.file, ": holds no array");
  if (!place.key && names.size() == 1) return names.front();
  if (place.key && std::find(names.begin(), names.end(), *place.key) != names.end())
    return *place.key;
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(names.size(), kMaxShown); ++i) shown.push_back(quoted(names[i]));
  if (names.size() > kMaxShown) shown.push_back(std::to_string(names.size() - kMaxShown) + " more");
  if (place.key)
    throw argument_error(place.file, ": has no array ", quoted(*place.key), "; those it has are ",
                         join(shown), did_you_mean(*place.key, names));
  throw argument_error(place.file, ": holds ", names.size(), " arrays; say which as ", place.file,
                       ":KEY with one of ", join(shown));
}

/// Reads a file of numpy.savez: each array is an entry KEY.npy.
at::Tensor read_npz(const ArrayPlace& place, std::string_view bytes) {
  constexpr std::string_view kEnding = ".npy";
  ZipArchive archive(bytes, place.file);
  std::vector<std::string> names;
  for (const std::string& name : archive.names())
    if (name.size() > kEnding.size() && name.ends_with(kEnding))
      names.push_back(name.substr(0, name.size() - kEnding.size()));
  if (names.empty())
    throw data_error(place.file, ": a zip archive that numpy.savez did not write", kHowToWrite);
  const std::string entry = chosen_key(place, names) + std::string(kEnding);
  return parse_npy(archive.read(entry), place.file + ": " + quoted(entry));
}

void read_into(ArrayFile& array, const ArrayPlace& place, const std::string& bytes) {
  if (is_zip(bytes)) {
    array.values = read_npz(place, bytes);
    return;
  }
  if (place.key)
    throw argument_error(place.file, ": holds one array without a name; leave out ':", *place.key,
                         "'");
  const std::string_view magic = std::string_view(bytes).substr(0, 4);  // 0, 0, uint8, dimensions
  if (is_npy(bytes)) {
    array.values = parse_npy(bytes, place.file);
  } else if (magic == std::string_view("\0\0\x08\x01", 4)) {
    array.values = read_idx_labels(place.file).values;
  } else if (magic.substr(0, 3) == std::string_view("\0\0\x08", 3)) {
    array.values = read_idx_images(place.file).values;
    array.labels = labels_beside(place.file, array.values.size(0));
  } else {
    throw data_error(
        place.file,
        ": not a file of arrays; those read are .npy, .npz and IDX, each also gzip-compressed",
        kHowToWrite);
  }
}

}  // namespace

ArrayFile read_array_file(const std::string& specification) {
  const ArrayPlace place = parse_place(specification);
  std::string bytes = read_file(place.file);
  ArrayFile array{.source = specification, .digest = sha256(bytes)};
  if (is_gzip(bytes)) bytes = gunzip(bytes, place.file);
  read_into(array, place, bytes);
  array.values = array.values.contiguous();
  if (array.values.dim() == 0 || array.values.numel() == 0)
    throw data_error(specification, ": ",
                     (array.values.dim() == 0 ? "a single number" : "an array without values"),
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
