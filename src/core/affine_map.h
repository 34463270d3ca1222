/// @file
/// z = m + A e: every base distribution is an affine map of a standard normal.
#pragma once

#include <ATen/ATen.h>

namespace crais {

/// One affine map per problem: loc m [P,D] with a diagonal [P,D] or lower-triangular [P,D,D] A.
/// The base it stands for is N(m, A A^T). Immutable.
///
///     crais::AffineMap base(at::zeros({1, 2}), at::full({1, 2}, 2.0));  // N(0, 4 I)
///     at::Tensor z = base.to_z(at::randn({1, 10, 2}));                 // ten draws of it
class AffineMap {
 public:
  /// Throws c10::Error if the shapes do not agree, a number is not finite, the diagonal not
  /// positive or something lies above it.
  AffineMap(at::Tensor loc, at::Tensor scale);

  /// An encoder's q(z | x). Throws Error kData naming the first problem for which its numbers are
  /// no distribution.
  static AffineMap encoded(const at::Tensor& loc, const at::Tensor& scale);

  /// m = 0, A = I.
  static AffineMap identity(int64_t num_problems, int64_t dim, const at::TensorOptions& options);

  int64_t num_problems() const { return loc_.size(0); }
  int64_t dim() const { return loc_.size(1); }
  at::TensorOptions options() const { return loc_.options(); }
  const at::Tensor& loc() const { return loc_; }
  /// A as a matrix, [P,D,D].
  at::Tensor matrix() const;

  /// e [P,K,D] -> z [P,K,D].
  at::Tensor to_z(const at::Tensor& e) const;
  /// z [P,K,D] -> e [P,K,D].
  at::Tensor to_e(const at::Tensor& z) const;
  /// The gradient with respect to e of a function whose gradient with respect to z is given: A^T g.
  at::Tensor pull_back(const at::Tensor& grad_z) const;
  /// log|det A|, [P] float64.
  const at::Tensor& log_abs_det() const { return log_abs_det_; }

  /// The same base, each standard deviation multiplied by `factor`.
  AffineMap widened(double factor) const;

  /// The maps of the problems at `index` [Q] int64.
  AffineMap select(const at::Tensor& index) const;

 private:
  bool is_triangular() const { return scale_.dim() == 3; }
  /// e A^T + m, or g A, by the loops of src/simd if they can; else undefined.
  at::Tensor multiplied(const at::Tensor& x, const at::Tensor& packed, bool transposed) const;

  at::Tensor loc_;
  at::Tensor scale_;
  at::Tensor log_abs_det_;
  // A triangle as the loops of src/simd read it, one problem after another: a product of 16 vectors
  // then takes a third of the time of at::bmm. Undefined where they have no part in it.
  at::Tensor packed_, packed_transposed_;
  bool is_identity_ = false;  // saves two passes over the particles
};

}  // namespace crais
