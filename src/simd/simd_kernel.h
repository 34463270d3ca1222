// Loops over plain memory, compiled once for each instruction set: what is drawn and what is summed
// around evaluations. No library but the language's.
#pragma once

#include <cstdint>
#include <vector>

namespace crais {

/// An affine map of vectors, start + x M, where M is lower-triangular or the transpose of such a
/// matrix. Columns are taken in blocks of 16, zeros filling the last. The packed form is `start`
/// and then, of each row of M, the blocks that are not all zero.
struct Triangle {
  int64_t dim;
  bool transposed;

  [[gnu::always_inline]] int64_t blocks() const { return (dim + 15) / 16; }
  /// Of row j: blocks [first_block(j), end_block(j)).
  [[gnu::always_inline]] int64_t first_block(int64_t j) const { return transposed ? j / 16 : 0; }
  [[gnu::always_inline]] int64_t end_block(int64_t j) const {
    return transposed ? blocks() : j / 16 + 1;
  }
  int64_t packed_size() const;  // floats
};

/// The loops for one instruction set. All give the same bits, but for `multiply` and `gram`: they
/// fuse no multiplication with an addition, and sum in an order that does not depend on the width
/// of a register.
struct SimdKernel {
  const char* name;

  // Random numbers: the i-th is a function of `key` and i alone, wherever it is written to and
  // however many follow. They are made of the words of SplitMix64, which hashes a counter and
  // passes BigCrush.                                           [Steele, Lea & Flood 2014]
  /// Standard normal, by Box and Muller's method: |x| < 6.7.
  void (*normals)(uint64_t key, float* out, int64_t count);
  /// Uniform in [0, 1), multiples of 2^-24.
  void (*uniforms)(uint64_t key, float* out, int64_t count);
  /// Uniform in [0, 1), multiples of 2^-52.
  void (*wide_uniforms)(uint64_t key, double* out, int64_t count);

  // Passes over `rows` vectors of `dim` floats each, one after another.
  /// |x|^2 of each.
  void (*squared_norms)(const float* x, int64_t rows, int64_t dim, double* out);
  /// p + a grad - b e, with an a and a b for each row.
  void (*kick)(const float* p, const float* grad, const float* e, const float* a, const float* b,
               int64_t rows, int64_t dim, float* out);
  /// The same, and e + 2 c times that.
  void (*kick_and_drift)(const float* p, const float* grad, const float* e, const float* a,
                         const float* b, const float* c, int64_t rows, int64_t dim, float* out_p,
                         float* out_e);
  /// Each row x becomes start + x M, the affine map in its packed form.
  void (*multiply)(const Triangle& shape, const float* packed, const float* x, int64_t rows,
                   float* out);
  /// out [rows,rows] = X X^T of X = bfloat16 numbers x [rows,dim], each column times its `scale`.
  /// `scratch` holds gram_scratch(rows, dim) floats.
  void (*gram)(const uint16_t* x, const float* scale, int64_t rows, int64_t dim, float* scratch,
               float* out);
};

/// What `gram` needs of memory: whole tiles of 4 rows and blocks of 16 columns.
[[gnu::always_inline]] inline int64_t gram_scratch(int64_t rows, int64_t dim) {
  return (rows + 3) / 4 * 4 * ((dim + 15) / 16 * 16);
}

// Each is defined in the source file of its name, compiled for that instruction set.
extern const SimdKernel kAvx512Simd;
extern const SimdKernel kAvx2Simd;
extern const SimdKernel kPortableSimd;

/// Those that this processor has, the fastest first.
std::vector<const SimdKernel*> available_simd_kernels();

/// The fastest of them.
const SimdKernel& simd_kernel();

}  // namespace crais
