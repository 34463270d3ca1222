#include "core/particles.h"

namespace crais {

Particles where(const at::Tensor& mask, const Particles& yes, const Particles& no) {
  const at::Tensor wide = mask.unsqueeze(-1);
  return {at::where(wide, yes.e, no.e), at::where(mask, yes.log_q0, no.log_q0),
          at::where(mask, yes.log_gamma, no.log_gamma),
          at::where(wide, yes.grad_log_gamma, no.grad_log_gamma), at::Tensor()};
}

}  // namespace crais
