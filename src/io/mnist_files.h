// Files of MNIST, plain or compressed by gzip: the binary IDX format, and .amat, a text format with
// one image of 28 x 28 zeros and ones on each line.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>
#include <string>

namespace crais {

struct IdxArray {
  at::Tensor values;  // uint8
  std::string md5;    // of the uncompressed file
};

/// Reads an IDX file of unsigned bytes with three dimensions (magic 0x00000803): [N, rows, cols].
/// Throws Error: kNoInput if the file cannot be read; kData if it has another format, has no
/// images, or is not exactly as long as its header says.
IdxArray read_idx_images(const std::filesystem::path& path);

/// Reads an IDX file of unsigned bytes with one dimension (magic 0x00000801): [N].
IdxArray read_idx_labels(const std::filesystem::path& path);

/// Reads a file in the .amat format: [N, 784], 0 or 255. Throws Error: kNoInput if the file cannot
/// be read; kData that names the file and the line for a value other than 0 and 1 or a line of
/// another length.
IdxArray read_amat(const std::filesystem::path& path);

}  // namespace crais
