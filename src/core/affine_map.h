/// @file
/// z = m + A e: every base distribution is an affine map of a standard normal.
#pragma once

#include <ATen/ATen.h>

namespace crais {

/// One affine map for each problem: loc m [P,D] and scale A, diagonal [P,D] or lower-triangular
/// [P,D,D]. The map stands for the base N(m, A A^T). Immutable.
///
///     crais::AffineMap base(at::zeros({1, 2}), at::full({1, 2}, 2.0));  // N(0, 4 I)
///     at::Tensor z = base.to_z(at::randn({1, 10, 2}));                 // ten draws of the base
class AffineMap {
 public:
  /// Throws c10::Error if the shapes do not agree, if a number is not finite, if the diagonal is
  /// not positive, or if an element above the diagonal is not 0.
  AffineMap(at::Tensor loc, at::Tensor scale);

  /// The map of an encoder's q(z | x). Throws Error kData that names the first problem with a mean
  /// that is not finite or a standard deviation that is not positive and finite.
  static AffineMap encoded(const at::Tensor& loc, const at::Tensor& scale);

  /// The identity: m = 0, A = I.
  static AffineMap identity(int64_t num_problems, int64_t dim, const at::TensorOptions& options);

  int64_t num_problems() const { return loc_.size(0); }
  int64_t dim() const { return loc_.size(1); }
  at::TensorOptions options() const { return loc_.options(); }
  const at::Tensor& loc() const { return loc_; }
  /// A as a full matrix [P,D,D].
  at::Tensor matrix() const;

  /// Maps e [P,K,D] to z [P,K,D].
  at::Tensor to_z(const at::Tensor& e) const;
  /// Maps z [P,K,D] to e [P,K,D].
  at::Tensor to_e(const at::Tensor& z) const;
  /// Turns the gradient g of a function with respect to z into its gradient with respect to e: A^T
  /// g.
  at::Tensor pull_back(const at::Tensor& grad_z) const;
  /// log|det A|, [P] float64.
  const at::Tensor& log_abs_det() const { return log_abs_det_; }

  /// A base with the same mean whose standard deviations are multiplied by `factor`.
  AffineMap widened(double factor) const;

  /// The maps of the problems at `index` [Q] int64. Copies of one large matrix share its memory,
  /// and their products with the particles of all problems are one product.
  AffineMap select(const at::Tensor& index) const;

 private:
  bool is_triangular() const { return scale_.dim() == 3; }
  /// True if all problems have one matrix in memory.
  bool is_shared() const { return is_triangular() && num_problems() > 1 && scale_.stride(0) == 0; }
  /// e A^T + m, or g A, by the loops of src/simd; undefined if these loops cannot take `x`.
  at::Tensor multiplied(const at::Tensor& x, const at::Tensor& packed, bool transposed) const;

  at::Tensor loc_;
  at::Tensor scale_;
  at::Tensor log_abs_det_;
  // The triangles as the loops of src/simd read them, one problem after another. A product of 16
  // vectors is then 3 times as fast as at::bmm. Undefined if the loops are not used.
  at::Tensor packed_, packed_transposed_;
  bool is_identity_ = false;  // saves two passes over the particles
};

}  // namespace crais
