// Passes over particles.
#pragma once

#include "simd/simd_kernel.h"
#include "simd/vectors.h"

namespace crais {
namespace {

constexpr int kBlock = 16;                      // floats
constexpr int kBlockVectors = kBlock / kWords;  // of a block

/// 16 columns in registers.
struct Block {
  Floats of[kBlockVectors];
};

[[gnu::always_inline]] inline Block load(const float* from) {
  Block x;
#pragma GCC unroll 4
  for (int v = 0; v < kBlockVectors; ++v)  // GCC would copy a whole Block word by word
    __builtin_memcpy(&x.of[v], from + v * kWords, sizeof(Floats));
  return x;
}

inline void store(const Block& x, float* to, int64_t count) {
  if (count == kBlock) {
#pragma GCC unroll 4
    for (int v = 0; v < kBlockVectors; ++v)
      __builtin_memcpy(to + v * kWords, &x.of[v], sizeof(Floats));
    return;
  }
  float all[kBlock];
  store(x, all, kBlock);
  for (int64_t i = 0; i < count; ++i) to[i] = all[i];
}

/// The last `count` floats before `end`, in the upper lanes, with zeros in the lower lanes.
[[gnu::always_inline]] inline Block load_last(const float* end, int64_t count) {
  Block x = load(end - kBlock);
#pragma GCC unroll 4
  for (int v = 0; v < kBlockVectors; ++v) {
    Ints lane = {};
#pragma GCC unroll 16
    for (int i = 0; i < kWords; ++i) lane[i] = v * kWords + i;
    const Ints counts = lane >= kBlock - static_cast<int32_t>(count);
    x.of[v] = reinterpret_cast<Floats>(reinterpret_cast<Ints>(x.of[v]) & counts);
  }
  return x;
}

/// The sum of sixteen numbers, by halves.
[[gnu::always_inline]] inline double total(const Block& x) {
  using Eight = float __attribute__((vector_size(32)));
  using Four = float __attribute__((vector_size(16)));
  using Two = float __attribute__((vector_size(8)));
  Eight eight[2];
  __builtin_memcpy(eight, &x, sizeof(x));
  eight[0] += eight[1];
  Four four[2];
  __builtin_memcpy(four, eight, sizeof(four));
  four[0] += four[1];
  Two two[2];
  __builtin_memcpy(two, four, sizeof(two));
  two[0] += two[1];
  return static_cast<double>(two[0][0] + two[0][1]);
}

void squared_norms(const float* x, int64_t rows, int64_t dim, double* out) {
  for (int64_t row = 0; row < rows; ++row, x += dim) {
    if (dim < kBlock) {
      float sum = 0;
      for (int64_t i = 0; i < dim; ++i) sum += x[i] * x[i];
      out[row] = static_cast<double>(sum);
      continue;
    }
    Block sum = {};
    const auto add = [&sum](const Block& part) {
#pragma GCC unroll 4
      for (int v = 0; v < kBlockVectors; ++v) sum.of[v] += part.of[v] * part.of[v];
    };
    int64_t i = 0;
    for (; i + kBlock <= dim; i += kBlock) add(load(x + i));
    if (i < dim) add(load_last(x + dim, dim - i));
    out[row] = total(sum);
  }
}

template <class T>
[[gnu::always_inline]] inline T load_as(const float* from) {
  T x;
  __builtin_memcpy(&x, from, sizeof(T));
  return x;
}

/// Calls f(place, number) for all elements of a row. `number` is a vector; the last vector overlaps
/// the one before it. In a row shorter than one vector, `number` is a float.
template <class F>
[[gnu::always_inline]] inline void along_row(int64_t dim, const F& f) {
  if (dim < kWords) {
    for (int64_t i = 0; i < dim; ++i) f(i, float{});
    return;
  }
  int64_t i = 0;
  for (; i + kWords <= dim; i += kWords) f(i, Floats{});
  if (i < dim) f(dim - kWords, Floats{});
}

template <class T>
[[gnu::always_inline]] inline T kicked(const float* p, const float* grad, const float* e, float a,
                                       float b) {
  return load_as<T>(p) + a * load_as<T>(grad) - b * load_as<T>(e);
}

void kick(const float* p, const float* grad, const float* e, const float* a, const float* b,
          int64_t rows, int64_t dim, float* out) {
  for (int64_t row = 0; row < rows; ++row, p += dim, grad += dim, e += dim, out += dim)
    along_row(dim, [&](int64_t i, auto number) {
      const auto to = kicked<decltype(number)>(p + i, grad + i, e + i, a[row], b[row]);
      __builtin_memcpy(out + i, &to, sizeof(to));
    });
}

void kick_and_drift(const float* p, const float* grad, const float* e, const float* a,
                    const float* b, const float* c, int64_t rows, int64_t dim, float* out_p,
                    float* out_e) {
  for (int64_t row = 0; row < rows; ++row) {
    along_row(dim, [&](int64_t i, auto number) {
      using T = decltype(number);
      const T to_p = kicked<T>(p + i, grad + i, e + i, a[row], b[row]);
      const T to_e = load_as<T>(e + i) + 2 * c[row] * to_p;
      __builtin_memcpy(out_p + i, &to_p, sizeof(T));
      __builtin_memcpy(out_e + i, &to_e, sizeof(T));
    });
    p += dim, grad += dim, e += dim, out_p += dim, out_e += dim;
  }
}

constexpr int kColumns = 4;                            // blocks that one sum covers
constexpr int kRows = CRAIS_SIMD_BYTES == 64 ? 4 : 1;  // as many as fit into the registers

/// sum[n][c] += x[n][j] m[j][c], over `count` rows m of C blocks; the rows are `stride` floats
/// apart.
template <int N, int C>
void add_rows(const float* m, int64_t stride, const float* x, int64_t dim, int64_t count,
              Block (*sum)[kColumns]) {
  Block of[N][C];
#pragma GCC unroll 4
  for (int n = 0; n < N; ++n)
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) of[n][c] = sum[n][c];
  for (int64_t j = 0; j < count; ++j, m += stride) {
    Block row[C];
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) row[c] = load(m + c * kBlock);
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      const Floats factor = x[n * dim + j] - Floats{};
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c)
#pragma GCC unroll 4
        for (int v = 0; v < kBlockVectors; ++v)
          of[n][c].of[v] = multiply_add(factor, row[c].of[v], of[n][c].of[v]);
    }
  }
#pragma GCC unroll 4
  for (int n = 0; n < N; ++n)
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) sum[n][c] = of[n][c];
}

template <int N>
void add_rows(int64_t columns, const float* m, int64_t stride, const float* x, int64_t dim,
              int64_t count, Block (*sum)[kColumns]) {
  constexpr decltype(&add_rows<N, 1>) kOf[] = {nullptr, add_rows<N, 1>, add_rows<N, 2>,
                                               add_rows<N, 3>, add_rows<N, 4>};
  kOf[columns](m, stride, x, dim, count, sum);
}

/// Multiplies N rows with the columns of the blocks [first, end).
template <int N>
void multiply_rows(const Triangle& shape, const float* packed, const float* x, int64_t first,
                   int64_t end, float* out) {
  const int64_t dim = shape.dim;
  Block sum[N][kColumns];
  for (int n = 0; n < N; ++n)
    for (int64_t block = first; block < end; ++block)
      sum[n][block - first] = load(packed + block * kBlock);
  packed += shape.blocks() * kBlock;
  for (int64_t j = 0; j < dim; j += kBlock) {  // 16 rows of M have the same blocks
    const int64_t from = shape.first_block(j), to = shape.end_block(j);
    const int64_t stride = (to - from) * kBlock, count = dim - j < kBlock ? dim - j : kBlock;
    const int64_t lower = from > first ? from : first, upper = to < end ? to : end;
    if (lower < upper)
      add_rows<N>(upper - lower, packed + (lower - from) * kBlock, stride, x + j, dim, count,
                  reinterpret_cast<Block(*)[kColumns]>(&sum[0][lower - first]));
    packed += count * stride;
  }
  for (int n = 0; n < N; ++n)
    for (int64_t block = first; block < end; ++block) {
      const int64_t column = block * kBlock;
      store(sum[n][block - first], out + n * dim + column,
            dim - column < kBlock ? dim - column : kBlock);
    }
}

void multiply(const Triangle& shape, const float* packed, const float* x, int64_t rows,
              float* out) {
  while (rows > 0) {
    const int64_t count = rows >= kRows ? kRows : 1;
    for (int64_t first = 0; first < shape.blocks(); first += kColumns) {
      const int64_t end = shape.blocks() < first + kColumns ? shape.blocks() : first + kColumns;
      (count == kRows ? multiply_rows<kRows> : multiply_rows<1>)(shape, packed, x, first, end, out);
    }
    rows -= count;
    x += count * shape.dim;
    out += count * shape.dim;
  }
}

constexpr int kTile = 4;  // rows and columns of a tile of the product

/// Adds the products of 4 rows with 4 rows to `sum`; the rows are `stride` floats apart.
void gram_tile(const float* a, const float* b, int64_t stride, Block (&sum)[kTile][kTile]) {
  Block of[kTile][kTile] = {};
  for (int64_t i = 0; i < stride; i += kBlock) {
    Block right[kTile];
#pragma GCC unroll 4
    for (int n = 0; n < kTile; ++n) right[n] = load(b + n * stride + i);
#pragma GCC unroll 4
    for (int m = 0; m < kTile; ++m) {
      const Block left = load(a + m * stride + i);
#pragma GCC unroll 4
      for (int n = 0; n < kTile; ++n)
#pragma GCC unroll 4
        for (int v = 0; v < kBlockVectors; ++v)
          of[m][n].of[v] = multiply_add(left.of[v], right[n].of[v], of[m][n].of[v]);
    }
  }
#pragma GCC unroll 4
  for (int m = 0; m < kTile; ++m)
#pragma GCC unroll 4
    for (int n = 0; n < kTile; ++n) sum[m][n] = of[m][n];
}

void gram(const uint16_t* x, const float* scale, int64_t rows, int64_t dim, float* scratch,
          float* out) {
  const int64_t stride = (dim + kBlock - 1) / kBlock * kBlock;
  const int64_t size = gram_scratch(rows, dim);
  for (int64_t row = 0; row < rows; ++row, x += dim) {
    float* const to = scratch + row * stride;
    for (int64_t i = 0; i < dim; ++i) {
      const uint32_t bits = static_cast<uint32_t>(x[i]) << 16;
      to[i] = __builtin_bit_cast(float, bits) * scale[i];
    }
    for (int64_t i = dim; i < stride; ++i) to[i] = 0;
  }
  for (int64_t i = rows * stride; i < size; ++i) scratch[i] = 0;
  for (int64_t i = 0; i < rows; i += kTile)
    for (int64_t j = 0; j <= i; j += kTile) {
      Block sum[kTile][kTile];
      gram_tile(scratch + i * stride, scratch + j * stride, stride, sum);
      for (int64_t m = 0; m < kTile && i + m < rows; ++m)
        for (int64_t n = 0; n < kTile && j + n < rows; ++n)
          out[(i + m) * rows + j + n] = out[(j + n) * rows + i + m] =
              static_cast<float>(total(sum[m][n]));
    }
}

}  // namespace
}  // namespace crais
