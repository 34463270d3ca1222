// Files of MNIST, plain or gzip-compressed: the IDX format, and .amat, which is text, one image of
// 28 x 28 zeros and ones a line.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>
#include <string>

namespace crais {

struct IdxArray {
  at::Tensor values;  // uint8
  std::string md5;    // of the uncompressed file
};

/// An IDX file of unsigned bytes with three dimensions (magic 0x00000803): [N, rows, cols].
/// Throws Error: kNoInput if it cannot be read; kData if it is anything else, has no images, or is
/// not exactly as long as its header says.
IdxArray read_idx_images(const std::filesystem::path& path);

/// One dimension (magic 0x00000801): [N].
IdxArray read_idx_labels(const std::filesystem::path& path);

/// A file in the .amat form: [N, 784], 0 or 255. Throws Error: kNoInput if it cannot be read;
/// kData, naming the file and the line, for anything but zeros and ones and for a line of another
/// length.
IdxArray read_amat(const std::filesystem::path& path);

}  // namespace crais
