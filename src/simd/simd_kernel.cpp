#include "simd/simd_kernel.h"

namespace crais {

int64_t Triangle::packed_size() const {
  int64_t size = 16 * blocks();
  for (int64_t j = 0; j < dim; ++j) size += 16 * (end_block(j) - first_block(j));
  return size;
}

std::vector<const SimdKernel*> available_simd_kernels() {
  std::vector<const SimdKernel*> kernels;
#ifdef CRAIS_X86_KERNELS
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
    kernels.push_back(&kAvx512Simd);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    kernels.push_back(&kAvx2Simd);
#endif
  kernels.push_back(&kPortableSimd);
  return kernels;
}

const SimdKernel& simd_kernel() {
  static const SimdKernel& kernel = *available_simd_kernels().front();
  return kernel;
}

}  // namespace crais
