#include "estimates/expectation.h"

#include <cmath>

#include "core/log_math.h"
#include "util/error.h"

namespace crais {
namespace {

/// sqrt(N / (N - 1) * sum), NaN for N = 1.
at::Tensor error_of(const at::Tensor& sum_of_squares, int64_t n) {
  const double correction = n > 1 ? static_cast<double>(n) / static_cast<double>(n - 1) : NAN;
  return (sum_of_squares.clamp_min(0) * correction).sqrt();
}

}  // namespace

std::string to_string(ErrorFrom from) {
  if (from == ErrorFrom::kNothing) return "nothing";
  return from == ErrorFrom::kParticles ? "particles" : "replicates";
}

ExpectationSums expectation_sums(const at::Tensor& values, const WeightedParticles& particles) {
  const auto k = static_cast<double>(particles.log_w.size(1));
  const at::Tensor h = values.to(at::kDouble);
  const at::Tensor w = log_normalise(particles.log_w).exp().unsqueeze(-1);  // [P,K,1]
  ExpectationSums sums{.log_total = log_mean_exp(particles.log_w) + std::log(k)};
  sums.num_particles = at::full_like(sums.log_total, k);
  sums.num_resamplings = particles.num_resamplings.to(sums.log_total.options());
  sums.square = w.square().sum({1, 2});
  sums.mean = (w * h).sum(1);
  const at::Tensor d = h - sums.mean.unsqueeze(1);
  sums.variance = (w * d.square()).sum(1);
  at::Tensor term = w.square();
  for (int n = 1; n <= 4; ++n) {
    term = term * d;
    sums.powers.push_back(term.sum(1));
  }
  return sums;
}

ExpectationEstimate pooled(const std::vector<ExpectationSums>& parts) {
  if (parts.empty()) throw internal_error("an expectation over no replicates");
  // Stacks one field of all parts, row below row.
  const auto stacked = [&](const auto& field) {
    std::vector<at::Tensor> rows;
    for (const ExpectationSums& part : parts) rows.push_back(field(part));
    return at::cat(rows);
  };
  const auto column = [&](const at::Tensor ExpectationSums::*field) {
    return stacked([field](const ExpectationSums& part) { return part.*field; });
  };
  const auto power = [&](size_t n) {
    return stacked([n](const ExpectationSums& part) { return part.powers[n - 1]; });
  };
  const at::Tensor share = column(&ExpectationSums::log_total).softmax(0).unsqueeze(1);  // [R,1]
  const at::Tensor means = column(&ExpectationSums::mean);
  const at::Tensor variances = column(&ExpectationSums::variance);
  const at::Tensor p0 = column(&ExpectationSums::square).unsqueeze(1);

  ExpectationEstimate e{
      .replicates = means.size(0),
      .particles = column(&ExpectationSums::num_particles).sum().to(at::kLong).item<int64_t>()};
  const bool independent = (column(&ExpectationSums::num_resamplings) == 0).all().item<bool>();
  e.mean = (share * means).sum(0);
  const at::Tensor shift = means - e.mean;  // for each replicate
  e.variance = (share * (variances + shift.square())).sum(0);
  e.ess = 1 / ((share.square() * p0).sum().item<double>() * static_cast<double>(e.particles));
  const at::Tensor squares = share.square();
  if (independent) {
    e.from = ErrorFrom::kParticles;
    const at::Tensor p1 = power(1), p2 = power(2), p3 = power(3), p4 = power(4), v = e.variance;
    // sum W^2 (h - E)^2 of each replicate, from powers about its own mean; then the fourth powers.
    const at::Tensor second = p2 + 2 * shift * p1 + shift.square() * p0;
    const at::Tensor fourth =
        p4 + 4 * shift * p3 + 6 * shift.square() * p2 + 4 * shift.pow(3) * p1 + shift.pow(4) * p0;
    e.std_error = error_of((squares * second).sum(0), e.particles);
    e.variance_std_error =
        error_of((squares * (fourth - 2 * v * second + v.square() * p0)).sum(0), e.particles);
    return e;
  }
  e.from = e.replicates > 1 ? ErrorFrom::kReplicates : ErrorFrom::kNothing;
  e.std_error = error_of((squares * shift.square()).sum(0), e.replicates);
  e.variance_std_error =
      error_of((squares * (variances + shift.square() - e.variance).square()).sum(0), e.replicates);
  return e;
}

}  // namespace crais
