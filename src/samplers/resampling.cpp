#include "samplers/resampling.h"

#include "core/log_math.h"
#include "core/rng.h"
#include "util/error.h"

namespace crais {
namespace {

/// Inverts the cumulative distribution of the weights [P,K] at points [P,N] in [0, 1).
at::Tensor inverted(const at::Tensor& log_w, const at::Tensor& points) {
  const at::Tensor cumulative = log_normalise(log_w).exp().cumsum(-1);
  const at::Tensor scaled = points * cumulative.slice(-1, -1);  // rounding: the last sum is near 1
  return at::searchsorted(cumulative, scaled.contiguous(), /*out_int32=*/false, /*right=*/true)
      .clamp_max(log_w.size(-1) - 1);
}

/// One uniform number u for all points (k + u) / K: the least noise of the unbiased schemes that
/// keep the order.                               [Carpenter, Clifford & Fearnhead 1999]
class Systematic : public Resampling {
 public:
  using Resampling::Resampling;
  at::Tensor ancestors(const at::Tensor& log_w, at::Generator& rng) const override {
    return systematic_ancestors(log_w, log_w.size(1), rng);
  }
};

/// K independent draws.                                        [Gordon, Salmond & Smith 1993]
class Multinomial : public Resampling {
 public:
  using Resampling::Resampling;
  at::Tensor ancestors(const at::Tensor& log_w, at::Generator& rng) const override {
    return inverted(log_w, fill_uniform(at::empty_like(log_w), rng));
  }
  bool draws_independently() const override { return true; }
};

template <typename Scheme>
std::unique_ptr<Resampling> scheme(Spec& spec) {
  const double threshold = spec.number("threshold", 0.0, 1.0, 0.5);
  const std::string of = spec.word("of", "all");
  if (of != "all" && of != "last")
    throw argument_error("'", spec.text(), "': of must be all or last");
  return std::make_unique<Scheme>(threshold, of == "last");
}

const std::string kWhen =
    " once the ESS is below TAU = 0.5 of all (of=last: of what it was at the last resampling)";
const Enrol<ResamplingRegistry> kSystematic("systematic[:TAU,of=last]",
                                            "evenly spaced draws" + kWhen, "systematic",
                                            scheme<Systematic>);
const Enrol<ResamplingRegistry> kMultinomial("multinomial[:TAU,of=last]",
                                             "independent draws" + kWhen, "multinomial",
                                             scheme<Multinomial>);

}  // namespace

at::Tensor systematic_ancestors(const at::Tensor& log_w, int64_t count, at::Generator& rng) {
  const at::Tensor u = fill_uniform(at::empty({log_w.size(0), 1}, log_w.options()), rng);
  return inverted(log_w, (at::arange(count, log_w.options()) + u) / static_cast<double>(count));
}

at::Tensor Resampling::due(const at::Tensor& log_w, const at::Tensor& last_ess) const {
  return ess(log_w) < (ratchet_ ? threshold_ * last_ess : at::full_like(last_ess, threshold_));
}

Particles gather(const Particles& particles, const at::Tensor& index) {
  const auto rows = [&](const at::Tensor& x) { return x.gather(1, index); };
  const auto vectors = [&](const at::Tensor& x) {
    return x.defined() ? x.gather(1, index.unsqueeze(-1).expand_as(x)) : x;
  };
  return {vectors(particles.e), rows(particles.log_q0), rows(particles.log_gamma),
          vectors(particles.grad_log_gamma), vectors(particles.momentum)};
}

}  // namespace crais
