#include "report/image_grid.h"

#include <string>

#include "util/error.h"
#include "util/files.h"

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

constexpr int64_t kGap = 1;
constexpr double kGapGrey = 0.5;

void append(void* bytes, void* data, int size) {
  static_cast<std::string*>(bytes)->append(static_cast<const char*>(data),
                                           static_cast<size_t>(size));
}

at::Tensor laid_out(const at::Tensor& images, int64_t rows, int64_t cols, int64_t columns) {
  const int64_t count = images.size(0);
  const int64_t lines = (count + columns - 1) / columns;
  at::Tensor cells = at::zeros({lines * columns, rows, cols});
  cells.slice(0, 0, count).copy_(images.detach().view({count, rows, cols}));
  const at::Tensor framed =
      at::constant_pad_nd(cells.clamp(0.0, 1.0), {0, kGap, 0, kGap}, kGapGrey);
  const at::Tensor grid = framed.view({lines, columns, rows + kGap, cols + kGap})
                              .transpose(1, 2)
                              .reshape({lines * (rows + kGap), columns * (cols + kGap)});
  // No gap after the last row and column.
  return grid.slice(0, 0, -kGap).slice(1, 0, -kGap);
}

}  // namespace

void write_image_grid(const std::filesystem::path& path, const at::Tensor& images, int64_t rows,
                      int64_t cols, int64_t columns) {
  TORCH_CHECK(images.dim() == 2 && images.size(1) == rows * cols, "images of ", images.sizes(),
              " are not [N, ", rows * cols, "]");
  const at::Tensor grey =
      laid_out(images, rows, cols, columns).mul(255.0).round().to(at::kByte).contiguous();
  const int width = static_cast<int>(grey.size(1));
  std::string png;
  if (!stbi_write_png_to_func(append, &png, width, static_cast<int>(grey.size(0)), 1,
                              grey.data_ptr(), width))
    throw Error(ErrorKind::kInternal, path.string() + ": the PNG encoder failed");
  write_file_atomic(path, png);
}

}  // namespace crais
