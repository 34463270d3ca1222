// Image data sets: their places and their contents.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace crais {

enum class Split { kTrain, kValidation, kTest };

/// Parses "train", "validation" or "test". Throws Error kArgument for any other name.
Split parse_split(const std::string& name);
std::string to_string(Split split);

/// Images as stored in the file, before binarisation.
struct Images {
  at::Tensor pixels;                 // [N, rows * cols] uint8, 0..255
  std::optional<at::Tensor> labels;  // [N] uint8
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t first_index = 0;  // of pixels[0] in its file (validation starts at 50,000 of train)
  std::string source;       // path of the file, or "synthetic"
  std::string md5;          // of the uncompressed file (of the pixels if there is no file)

  int64_t size() const { return pixels.size(0); }
};

/// The folders of data: `data_dir`; if it is empty, $CRAIS_DATA and ./data.
std::vector<std::filesystem::path> data_roots(const std::string& data_dir);

/// The first of folder/name and folder/name.gz that is a file.
std::optional<std::filesystem::path> find_plain_or_gz(
    const std::vector<std::filesystem::path>& folders, const std::string& name);

/// The folders searched for MNIST's files, in order: D, D/raw, D/MNIST/raw, D/mnist for D in
/// `data_dir`; if it is empty, for D in $CRAIS_DATA and ./data.
std::vector<std::filesystem::path> data_folders(const std::string& data_dir);

/// True if the split's image file exists (plain or .gz).
bool has_images(const std::string& data_dir, Split split);

/// Reads a split. Train and validation share a file: its last sixth is validation (MNIST: 50,000
/// and 10,000). Throws Error: kNoInput that lists every searched path, kData if a file is damaged.
Images load_images(const std::string& data_dir, Split split);

/// The labels [N] beside a file "...images-idx3-ubyte[.gz]" of `count` images, if there are any.
/// Throws Error kData if the number of labels is not `count`.
std::optional<at::Tensor> labels_beside(const std::filesystem::path& images, int64_t count);

/// Larochelle's fixed binarisation (binarized_mnist_train.amat, _valid, _test; each plain or .gz):
/// pixels 0 or 255, no labels. Each split has its own file, so first_index is 0. Throws Error:
/// kNoInput that lists every searched path, kData that names the file and the line.
Images load_amat(const std::string& data_dir, Split split);

/// `count` stroke digits of 28 x 28 pixels, drawn by the program itself and determined by `seed`.
Images synthetic_images(int64_t count, uint64_t seed);

}  // namespace crais
