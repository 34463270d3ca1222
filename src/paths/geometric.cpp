// gamma_beta = q0^(1-beta) gamma^beta                                        [Neal 2001]
#include "core/path.h"
#include "core/plain.h"

namespace crais {
namespace {

class Geometric : public Path {
 public:
  Geometric() : Path(DivergenceRegistry::instance().make("divergence", "alpha:0")) {}

  PathPoint at(const at::Tensor& beta, const at::Tensor& log_q0,
               const at::Tensor& log_gamma) const override {
    return {log_density(beta, log_q0, log_gamma), (1 - beta).expand_as(log_q0),
            beta.expand_as(log_gamma)};
  }

  at::Tensor log_density(const at::Tensor& beta, const at::Tensor& log_q0,
                         const at::Tensor& log_gamma) const override {
    if (is_plain(log_q0, at::kDouble) && is_plain(log_gamma, at::kDouble) && log_q0.dim() == 2 &&
        beta.dim() == 2 && beta.size(1) == 1 && !beta.requires_grad())
      return bridged(beta, log_q0, log_gamma);
    // As in xlogy: an end of weight 0 must not turn -inf into NaN.
    const at::Tensor from = at::where(beta == 1, 0.0, (1 - beta) * log_q0);
    const at::Tensor to = at::where(beta == 0, 0.0, beta * log_gamma);
    return from + to;
  }

 private:
  /// One loop: 10 times as fast as at::where of scalars and columns.
  static at::Tensor bridged(const at::Tensor& beta, const at::Tensor& log_q0,
                            const at::Tensor& log_gamma) {
    at::Tensor log_density = at::empty_like(log_gamma);
    const auto betas = beta.accessor<double, 2>();
    const double *from = log_q0.data_ptr<double>(), *to = log_gamma.data_ptr<double>();
    double* out = log_density.data_ptr<double>();
    const int64_t particles = log_gamma.size(1);
    for (int64_t p = 0; p < log_gamma.size(0); ++p) {
      const double b = betas[p][0];
      for (int64_t k = 0; k < particles; ++k)
        *out++ = (b == 1 ? 0 : (1 - b) * *from) + (b == 0 ? 0 : b * *to), ++from, ++to;
    }
    return log_density;
  }
};

const Enrol<PathRegistry> kEnrolGeometric("geometric",
                                          "q0^(1-beta) gamma^beta; the power mean of order 0",
                                          "geometric", factory_of<Geometric>);

}  // namespace
}  // namespace crais
