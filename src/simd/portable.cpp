#include "simd/passes_impl.h"
#include "simd/random_impl.h"
#include "simd/simd_kernel.h"

namespace crais {
constinit const SimdKernel kPortableSimd = {"portable",     normals,       uniforms,
                                            wide_uniforms,  squared_norms, kick,
                                            kick_and_drift, multiply,      gram};
}  // namespace crais
