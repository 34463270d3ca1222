#include "core/affine_map.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/plain.h"
#include "simd/simd_kernel.h"
#include "util/error.h"

namespace crais {
namespace {

constexpr int64_t kMostPacked = 128;  // dimensions; above, the packed copy takes too much memory

/// The packed triangles of all problems, with `start` [P,D] if it is defined: [P, packed size].
at::Tensor packed(const at::Tensor& start, const at::Tensor& lower, bool transposed) {
  const int64_t problems = lower.size(0), dim = lower.size(1);
  const Triangle shape{dim, transposed};
  at::Tensor all = at::zeros({problems, shape.packed_size()}, lower.options());
  const at::Tensor matrix = (transposed ? lower.transpose(1, 2) : lower).contiguous();
  for (int64_t p = 0; p < problems; ++p) {
    float* to = all.data_ptr<float>() + p * all.size(1);
    const float* from = matrix.data_ptr<float>() + p * dim * dim;
    if (start.defined()) std::copy_n(start.data_ptr<float>() + p * dim, dim, to);
    to += 16 * shape.blocks();
    for (int64_t j = 0; j < dim; ++j, from += dim) {
      const int64_t begin = 16 * shape.first_block(j), end = 16 * shape.end_block(j);
      std::copy(from + begin, from + std::min(end, dim), to);
      to += end - begin;
    }
  }
  return all;
}

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

/// x L^T for x [...,D] and a large lower-triangular L [D,D]: [...,D]. Blocks leave out most of the
/// zeros.
at::Tensor times_transposed(const at::Tensor& x, const at::Tensor& lower) {
  return by_blocks(x, [&](const at::Tensor& rows, int64_t begin, int64_t end) {
    return at::mm(rows.narrow(1, 0, end), lower.slice(0, begin, end).narrow(1, 0, end).t());
  });
}

/// x L for the same shapes.
at::Tensor times(const at::Tensor& x, const at::Tensor& lower) {
  return by_blocks(x, [&](const at::Tensor& rows, int64_t begin, int64_t end) {
    return at::mm(rows.slice(1, begin), lower.slice(0, begin).slice(1, begin, end));
  });
}

}  // namespace

AffineMap::AffineMap(at::Tensor loc, at::Tensor scale)
    : loc_(std::move(loc)), scale_(std::move(scale)) {
  TORCH_CHECK(loc_.dim() == 2, "affine map: loc must be [problems, dim], got ", loc_.sizes());
  TORCH_CHECK(scale_.sizes() == loc_.sizes() ||
                  scale_.sizes() == at::IntArrayRef({loc_.size(0), loc_.size(1), loc_.size(1)}),
              "affine map: scale ", scale_.sizes(), " does not fit loc ", loc_.sizes());
  const at::Tensor diagonal = is_triangular() ? scale_.diagonal(0, -2, -1) : scale_;
  const at::Tensor matrix = is_shared() ? scale_[0] : scale_;
  TORCH_CHECK(
      (diagonal > 0).all().item<bool>() && loc_.isfinite().all().item<bool>() &&
          matrix.isfinite().all().item<bool>() &&
          (!is_triangular() || at::equal(matrix.tril(), matrix)),
      "affine map: loc and scale must be finite, scale a triangle with a positive diagonal");
  log_abs_det_ = diagonal.to(at::kDouble).log().sum(-1);
  if (is_triangular() && dim() <= kMostPacked && is_plain(loc_) && is_plain(scale_)) {
    packed_ = packed({}, scale_, /*transposed=*/false);
    packed_transposed_ = packed(loc_, scale_, /*transposed=*/true);
  }
}

AffineMap AffineMap::encoded(const at::Tensor& loc, const at::Tensor& scale) {
  const at::Tensor diagonal = scale.dim() == 3 ? scale.diagonal(0, -2, -1) : scale;
  const at::Tensor sound =
      loc.isfinite().all(-1) & scale.flatten(1).isfinite().all(-1) & (diagonal > 0).all(-1);
  if (!sound.all().item<bool>())
    throw data_error("the encoder gives problem ", (~sound).nonzero()[0].item<int64_t>(),
                     " a mean that is not finite, or a standard deviation that is not finite and "
                     "above 0; try the `base` prior");
  return {loc, scale};
}

AffineMap AffineMap::identity(int64_t num_problems, int64_t dim, const at::TensorOptions& options) {
  AffineMap map(at::zeros({num_problems, dim}, options), at::ones({num_problems, dim}, options));
  map.is_identity_ = true;
  return map;
}

at::Tensor AffineMap::multiplied(const at::Tensor& x, const at::Tensor& packed,
                                 bool transposed) const {
  if (!packed.defined() || !is_plain(x) || x.dim() != 3 || x.size(0) != num_problems() ||
      x.size(2) != dim())
    return {};
  at::Tensor product = at::empty_like(x);
  const int64_t problem = x.size(1) * dim();
  for (int64_t p = 0; p < num_problems(); ++p)
    simd_kernel().multiply({dim(), transposed}, packed.data_ptr<float>() + p * packed.size(1),
                           x.data_ptr<float>() + p * problem, x.size(1),
                           product.data_ptr<float>() + p * problem);
  return product;
}

at::Tensor AffineMap::to_z(const at::Tensor& e) const {
  if (is_identity_) return e;
  if (at::Tensor z = multiplied(e, packed_transposed_, /*transposed=*/true); z.defined()) return z;
  if (is_shared()) return times_transposed(e, scale_[0]) + loc_.unsqueeze(1);
  if (is_triangular()) return at::baddbmm(loc_.unsqueeze(1), e, scale_.transpose(1, 2));
  return at::addcmul(loc_.unsqueeze(1), e, scale_.unsqueeze(1));
}

at::Tensor AffineMap::to_e(const at::Tensor& z) const {
  if (is_identity_) return z;
  const at::Tensor centred = z - loc_.unsqueeze(1);
  if (!is_triangular()) return centred / scale_.unsqueeze(1);
  if (is_shared())
    return at::linalg_solve_triangular(scale_[0], centred.flatten(0, 1).t(), /*upper=*/false)
        .t()
        .reshape(centred.sizes());
  return at::linalg_solve_triangular(scale_, centred.transpose(1, 2), /*upper=*/false)
      .transpose(1, 2);
}

at::Tensor AffineMap::pull_back(const at::Tensor& grad_z) const {
  if (is_identity_) return grad_z;
  if (at::Tensor g = multiplied(grad_z, packed_, /*transposed=*/false); g.defined()) return g;
  if (is_shared()) return times(grad_z, scale_[0]);
  if (is_triangular()) return at::bmm(grad_z, scale_);
  return grad_z * scale_.unsqueeze(1);
}

at::Tensor AffineMap::matrix() const { return is_triangular() ? scale_ : at::diag_embed(scale_); }

AffineMap AffineMap::widened(double factor) const {
  if (is_shared()) return {loc_, (factor * scale_[0]).expand_as(scale_)};
  return {loc_, factor * scale_};
}

AffineMap AffineMap::select(const at::Tensor& index) const {
  if (is_shared() || (is_triangular() && num_problems() == 1 && dim() > kMostPacked))
    return {loc_.index_select(0, index), scale_[0].expand({index.size(0), -1, -1})};
  AffineMap part(loc_.index_select(0, index), scale_.index_select(0, index));
  part.is_identity_ = is_identity_;
  return part;
}

}  // namespace crais
