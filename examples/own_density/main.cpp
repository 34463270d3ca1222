// The log normaliser of a density of your own: the rates of three Poisson counts, whose Z is known.
#include <crais/crais.h>

#include <cmath>
#include <cstdio>

int main() {
  // log gamma(z) = sum_d x_d z_d - exp(z_d) for log-rates z and counts x; Z = prod_d Gamma(x_d).
  const at::Tensor x = at::tensor({3.0, 4.0, 7.0}, at::kDouble);
  const crais::FunctionTarget posterior({.dim = 3}, [&](const at::Tensor& z) {
    return (x * z - z.exp()).sum(-1);  // [P,K,3] -> [P,K]
  });

  const crais::Result r = crais::estimate_log_normalizer(posterior, {.chains = 64, .seed = 1});

  const double value = r.value.item<double>(), error = r.std_error.item<double>();
  const double truth = std::lgamma(3.0) + std::lgamma(4.0) + std::lgamma(7.0);
  std::printf("log Z = %.1f nats; exactly %.1f\n", value, truth);
  std::printf("a %s; its standard error is below 0.1: %s\n", crais::to_string(r.bound).c_str(),
              error < 0.1 ? "yes" : "no");
  std::printf("base %s, %.0f evaluations of the density and its gradient to estimate\n",
              r.base.c_str(), r.summary.evaluations);
  std::printf("flags: %s\n", r.flag_words(0).empty() ? "none" : r.flag_words(0).c_str());
  return std::abs(value - truth) < 5 * error ? 0 : 1;
}
