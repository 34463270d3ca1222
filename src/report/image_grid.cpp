#include "report/image_grid.h"

#include "report/png.h"
#include "util/files.h"

namespace crais {
namespace {

constexpr int64_t kGap = 1;
constexpr double kGapGrey = 0.5;

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
  const at::Tensor grid = laid_out(images, rows, cols, columns);
  write_file_atomic(path, png_of(grid.mul(255.0).round().to(at::kByte)));
}

}  // namespace crais
