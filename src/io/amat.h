// The .amat form of images: text, one image of 28 x 28 zeros and ones a line.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>
#include <string>

namespace crais {

struct AmatImages {
  at::Tensor pixels;  // [N, 784] uint8, 0 or 255
  std::string md5;    // of the uncompressed file
};

/// A file, plain or gzip-compressed. Throws Error: kNoInput if it cannot be read; kData, naming the
/// file and the line, for anything but zeros and ones and for a line of another length.
AmatImages read_amat(const std::filesystem::path& path);

}  // namespace crais
