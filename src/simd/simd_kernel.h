// Loops over plain memory, compiled once for each instruction set: random numbers and sums around
// evaluations. They use only the standard library.
#pragma once

#include <cstdint>
#include <vector>

namespace crais {

/// An affine map of vectors, start + x M. M is lower-triangular or the transpose of a
/// lower-triangular matrix. Columns come in blocks of 16; zeros fill the last block. The packed
/// form is `start` followed by the blocks of each row of M that are not all zero.
struct Triangle {
  int64_t dim;
  bool transposed;

  [[gnu::always_inline]] int64_t blocks() const { return (dim + 15) / 16; }
  /// The first block of row j: its blocks are [first_block(j), end_block(j)).
  [[gnu::always_inline]] int64_t first_block(int64_t j) const { return transposed ? j / 16 : 0; }
  [[gnu::always_inline]] int64_t end_block(int64_t j) const {
    return transposed ? blocks() : j / 16 + 1;
  }
  int64_t packed_size() const;  // floats
};

/// The loops for one instruction set. All instruction sets give the same bits, except in `multiply`
/// and `gram`: the other loops never fuse a multiplication with an addition, and their order of
/// summation does not depend on the width of a register.
struct SimdKernel {
  const char* name;

  // Random numbers. The i-th number is a function of `key` and i alone: it depends neither on its
  // address nor on the count. The numbers come from the words of SplitMix64, which hashes a counter
  // and passes BigCrush.                                              [Steele, Lea & Flood 2014]
  /// Standard normal numbers by Box and Muller's method: |x| < 6.7.
  void (*normals)(uint64_t key, float* out, int64_t count);
  /// Uniform numbers in [0, 1), multiples of 2^-24.
  void (*uniforms)(uint64_t key, float* out, int64_t count);
  /// Uniform numbers in [0, 1), multiples of 2^-52.
  void (*wide_uniforms)(uint64_t key, double* out, int64_t count);

  // Passes over `rows` contiguous vectors of `dim` floats each.
  /// |x|^2 of each vector.
  void (*squared_norms)(const float* x, int64_t rows, int64_t dim, double* out);
  /// p + a grad - b e, with one a and one b for each row.
  void (*kick)(const float* p, const float* grad, const float* e, const float* a, const float* b,
               int64_t rows, int64_t dim, float* out);
  /// The kicked momentum p' = p + a grad - b e, and the position e + 2 c p'.
  void (*kick_and_drift)(const float* p, const float* grad, const float* e, const float* a,
                         const float* b, const float* c, int64_t rows, int64_t dim, float* out_p,
                         float* out_e);
  /// Maps each row x to start + x M, with the affine map in its packed form.
  void (*multiply)(const Triangle& shape, const float* packed, const float* x, int64_t rows,
                   float* out);
  /// out [rows,rows] = X X^T. X is the bfloat16 matrix x [rows,dim] with each column multiplied by
  /// its `scale`. `scratch` holds gram_scratch(rows, dim) floats.
  void (*gram)(const uint16_t* x, const float* scale, int64_t rows, int64_t dim, float* scratch,
               float* out);
};

/// Floats of scratch memory for `gram`: whole tiles of 4 rows and blocks of 16 columns.
[[gnu::always_inline]] inline int64_t gram_scratch(int64_t rows, int64_t dim) {
  return (rows + 3) / 4 * 4 * ((dim + 15) / 16 * 16);
}

// Each kernel is defined in the source file of its name, compiled for that instruction set.
extern const SimdKernel kAvx512Simd;
extern const SimdKernel kAvx2Simd;
extern const SimdKernel kPortableSimd;

/// The kernels that this processor can run, fastest first.
std::vector<const SimdKernel*> available_simd_kernels();

/// The fastest kernel of this processor.
const SimdKernel& simd_kernel();

}  // namespace crais
