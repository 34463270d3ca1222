// PNG files.
#pragma once

#include <ATen/ATen.h>

#include <string>

namespace crais {

/// The content of a PNG file: grey values [rows, cols] or colours [rows, cols, 3], uint8.
/// Throws Error kInternal if the encoder fails.
std::string png_of(const at::Tensor& pixels);

}  // namespace crais
