// What this processor and its system can do beyond what compilers ask them.
#pragma once

namespace crais {

/// Whether the processor has AMX with bfloat16 and int8, and the system gives this process its
/// tiles: a system that has not been asked ends the process at the first use of one.
bool has_tiles();

/// Whether the processor has AVX-512's dot products of bfloat16 pairs.
bool has_avx512_bfloat16();

/// Whether the processor has dot products of integers for vectors of AVX2.
bool has_avx_vnni();

/// Whether it multiplies vectors of integers as often as vectors of floats, two a cycle: Intel's
/// since Skylake, AMD's since Zen 3.
bool has_fast_integers();

/// True if ATen multiplies bfloat16 matrices, summing in float32, by tiles, a fifth of the time of
/// float32 or less, or by AMD's dot products, half of it. Elsewhere they take longer.
bool has_bfloat16_products();

}  // namespace crais
