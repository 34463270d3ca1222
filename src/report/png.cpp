#include "report/png.h"

#include "util/error.h"

// Only the PNG writer, private to this file; its style is not ours to mend.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#define STBI_WRITE_NO_STDIO
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

namespace crais {
namespace {

void append(void* bytes, void* data, int size) {
  static_cast<std::string*>(bytes)->append(static_cast<const char*>(data),
                                           static_cast<size_t>(size));
}

}  // namespace

std::string png_of(const at::Tensor& pixels) {
  TORCH_CHECK(pixels.scalar_type() == at::kByte && (pixels.dim() == 2 || pixels.dim() == 3),
              "pixels of ", pixels.sizes(), " are no picture");
  const at::Tensor rows = pixels.contiguous();
  const int height = static_cast<int>(rows.size(0)), width = static_cast<int>(rows.size(1));
  const int channels = rows.dim() == 3 ? static_cast<int>(rows.size(2)) : 1;
  std::string png;
  if (!stbi_write_png_to_func(append, &png, width, height, channels, rows.data_ptr(),
                              width * channels))
    throw internal_error("the PNG encoder failed");
  return png;
}

}  // namespace crais
