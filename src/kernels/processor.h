// Abilities of the processor and its operating system beyond those that compilers check.
#pragma once

namespace crais {

/// True if the processor has AMX with bfloat16 and int8, and the operating system grants its tiles
/// to this process. The function asks for them: without the grant, the first use would end the
/// process.
bool has_tiles();

/// True if the processor has AVX-512's dot products of bfloat16 pairs.
bool has_avx512_bfloat16();

/// True if the processor has integer dot products for vectors of AVX2.
bool has_avx_vnni();

/// True if the processor multiplies integer vectors as fast as float vectors, two a cycle: Intel
/// since Skylake, AMD since Zen 3.
bool has_fast_integers();

/// True if ATen multiplies bfloat16 matrices with float32 sums faster than float32 matrices: at
/// least 5 times as fast by tiles, 2 times by AMD's dot products. On other processors it is slower.
bool has_bfloat16_products();

}  // namespace crais
