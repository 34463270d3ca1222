#include "programs/plane.h"

#include "core/rng.h"
#include "samplers/resampling.h"

namespace crais {

at::Tensor thinned(const at::Tensor& z, const at::Tensor& log_w, int64_t count, uint64_t seed) {
  at::Generator rng = make_generator(derive_seed(seed, Purpose::kResample));
  const at::Tensor index = ResamplingRegistry::instance()
                               .make("resampling", "systematic")
                               ->ancestors(log_w.unsqueeze(0), rng)
                               .squeeze(0);
  const at::Tensor positions =
      at::linspace(0, static_cast<double>(index.size(0) - 1), count, at::kDouble).round();
  return z.to(at::kDouble).index_select(0, index.index_select(0, positions.to(at::kLong)));
}

}  // namespace crais
