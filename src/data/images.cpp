#include "data/images.h"

#include <cstdlib>
#include <system_error>

#include "core/spec.h"
#include "io/mnist_files.h"
#include "util/error.h"

namespace crais {
namespace fs = std::filesystem;

Split parse_split(const std::string& name) {
  for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest})
    if (name == to_string(split)) return split;
  throw argument_error("unknown split '", name, "'; choose from train, validation, test");
}

std::string to_string(Split split) {
  if (split == Split::kTest) return "test";
  return split == Split::kTrain ? "train" : "validation";
}

std::vector<fs::path> data_roots(const std::string& data_dir) {
  if (!data_dir.empty()) return {data_dir};
  std::vector<fs::path> roots;
  const char* const from_environment = std::getenv("CRAIS_DATA");
  if (from_environment && *from_environment) roots.emplace_back(from_environment);
  roots.emplace_back("data");
  return roots;
}

std::vector<fs::path> data_folders(const std::string& data_dir) {
  std::vector<fs::path> folders;
  for (const fs::path& root : data_roots(data_dir))
    for (const char* below : {"", "raw", "MNIST/raw", "mnist"})
      folders.push_back(*below ? root / below : root);
  return folders;
}

std::optional<fs::path> find_plain_or_gz(const std::vector<fs::path>& folders,
                                         const std::string& name) {
  std::error_code ignored;
  for (const fs::path& folder : folders)
    for (const char* ending : {"", ".gz"})
      if (const fs::path path = folder / (name + ending); fs::is_regular_file(path, ignored))
        return path;
  return {};
}

namespace {

std::string image_name(Split split) {
  return std::string(split == Split::kTest ? "t10k" : "train") + "-images-idx3-ubyte";
}

/// The rows [begin, end) of a file that form a split.
struct Range {
  int64_t begin, end;
};

Range rows_of(Split split, int64_t count, const fs::path& path) {
  const int64_t first_of_validation = count - count / 6;
  if (split == Split::kTest) return {0, count};
  if (split == Split::kTrain) return {0, first_of_validation};
  if (first_of_validation == count)
    throw data_error(path.string(), ": the validation split is empty: the last sixth of ", count,
                     " images; 6 or more are needed");
  return {first_of_validation, count};
}

/// Throws Error kNoInput that lists the searched folders if there are no such images.
fs::path path_of_images(const std::string& data_dir, const std::string& name,
                        const std::string& what, const std::string& advice) {
  const std::vector<fs::path> folders = data_folders(data_dir);
  if (const auto path = find_plain_or_gz(folders, name)) return *path;
  std::vector<std::string> tried;
  tried.reserve(folders.size());
  for (const fs::path& folder : folders) tried.push_back((folder / (name + "[.gz]")).string());
  throw no_input_error("no ", what, "; tried ", join(tried), "; ", advice);
}

}  // namespace

std::optional<at::Tensor> labels_beside(const fs::path& images, int64_t count) {
  constexpr std::string_view kImages = "images-idx3";
  const fs::path plain = images.extension() == ".gz" ? images.stem() : images.filename();
  std::string name = plain.string();
  const size_t place = name.rfind(kImages);
  if (place == std::string::npos) return {};
  name.replace(place, kImages.size(), "labels-idx1");
  const auto path = find_plain_or_gz({images.parent_path()}, name);
  if (!path) return {};
  at::Tensor labels = read_idx_labels(*path).values;
  if (labels.size(0) != count)
    throw data_error(path->string(), ": ", labels.size(0), " labels for the ", count, " images of ",
                     images.string());
  return labels;
}

bool has_images(const std::string& data_dir, Split split) {
  return find_plain_or_gz(data_folders(data_dir), image_name(split)).has_value();
}

Images load_images(const std::string& data_dir, Split split) {
  const fs::path path = path_of_images(
      data_dir, image_name(split), to_string(split) + " images",
      "to fetch MNIST, run: scripts/fetch-mnist" + (data_dir.empty() ? "" : " " + data_dir));
  const IdxArray file = read_idx_images(path);
  const auto [begin, end] = rows_of(split, file.values.size(0), path);
  Images images{.pixels = file.values.flatten(1).slice(0, begin, end),
                .rows = file.values.size(1),
                .cols = file.values.size(2),
                .first_index = begin,
                .source = path.string(),
                .md5 = file.md5};
  if (const auto labels = labels_beside(path, file.values.size(0)))
    images.labels = labels->slice(0, begin, end);
  return images;
}

Images load_amat(const std::string& data_dir, Split split) {
  const std::string name =
      "binarized_mnist_" + (split == Split::kValidation ? "valid" : to_string(split)) + ".amat";
  const fs::path path =
      path_of_images(data_dir, name, to_string(split) + " images in .amat form",
                     "they are Larochelle's fixed binarisation of MNIST, at "
                     "http://www.cs.toronto.edu/~larocheh/public/datasets/binarized_mnist/" +
                         name);
  const IdxArray stored = read_amat(path);
  Images images;
  images.rows = images.cols = 28;
  images.pixels = stored.values;
  images.source = path.string();
  images.md5 = stored.md5;
  return images;
}

}  // namespace crais
