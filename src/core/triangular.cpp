#include "core/triangular.h"

#include <algorithm>
#include <vector>

namespace crais {
namespace {

/// Block by block of the D columns of a product, `part(rows of x, begin, end)`: [...,D].
template <typename Part>
at::Tensor by_blocks(const at::Tensor& x, const Part& part) {
  constexpr int64_t kBlock = 200;  // columns: smaller products would be slower
  const at::Tensor rows = x.reshape({-1, x.size(-1)});
  std::vector<at::Tensor> blocks;
  for (int64_t begin = 0; begin < rows.size(1); begin += kBlock)
    blocks.push_back(part(rows, begin, std::min(begin + kBlock, rows.size(1))));
  return (blocks.size() == 1 ? blocks.front() : at::cat(blocks, 1)).view(x.sizes());
}

}  // namespace

at::Tensor times_transposed(const at::Tensor& x, const at::Tensor& lower) {
  return by_blocks(x, [&](const at::Tensor& rows, int64_t begin, int64_t end) {
    return at::mm(rows.narrow(1, 0, end), lower.slice(0, begin, end).narrow(1, 0, end).t());
  });
}

at::Tensor times(const at::Tensor& x, const at::Tensor& lower) {
  return by_blocks(x, [&](const at::Tensor& rows, int64_t begin, int64_t end) {
    return at::mm(rows.slice(1, begin), lower.slice(0, begin).slice(1, begin, end));
  });
}

}  // namespace crais
