// The rate-distortion curve from the chains of one anneal.          [Huang et al. 2020]
#include "estimates/rate_distortion.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/log_math.h"
#include "core/spec.h"
#include "samplers/blocks.h"
#include "util/error.h"

namespace crais {
namespace {

constexpr const char *kSquares = "_squares", *kErrors = "_errors";  // suffixes; see CurveSums

/// Standard errors [P]; NaN for one chain.
at::Tensor jackknife_error(const at::Tensor& left_out) {
  if (left_out.size(1) < 2) return at::full({left_out.size(0)}, NAN, left_out.options());
  return jackknife_variance(left_out).sqrt();
}

/// Joins each column of `parts` to one by `join`.
template <class Join>
RateDistortion combined(const std::vector<RateDistortion>& parts, const Join& join) {
  RateDistortion all;
  for (const auto& [name, column] : RateDistortion::columns())
    for (at::Tensor CurveValues::*field : {&CurveValues::value, &CurveValues::error}) {
      std::vector<at::Tensor> tensors;
      for (const RateDistortion& part : parts)
        if ((part.*column.*field).defined()) tensors.push_back(part.*column.*field);
      if (!tensors.empty()) all.*column.*field = join(tensors);
    }
  return all;
}

/// The point of one temperature: [P] each.
RateDistortion curve_at(const at::Tensor& beta, const Particles& particles,
                        const at::Tensor& log_w) {
  const at::Tensor d = particles.log_q0 - particles.log_gamma;
  const at::Tensor shares = log_normalise(log_w).exp(), rest = log_rest(shares);
  // A particle of weight zero may have an infinite distortion.
  const at::Tensor shared = at::where(shares == 0, 0.0, shares * d);
  const at::Tensor distortion = shared.sum(1);
  const at::Tensor apart = at::where(shares == 0, 0.0, d - distortion.unsqueeze(1));
  const at::Tensor distortions = -shares * apart / (1 - shares).clamp_min(kLeastRest);
  const auto k = static_cast<double>(log_w.size(1));
  RateDistortion point;
  point.beta = beta[0];
  point.distortion = {distortion, jackknife_error(distortions)};
  point.log_normalizer = {log_mean_exp(log_w), jackknife_error(rest)};
  point.rate = {-beta * distortion - point.log_normalizer.value,
                jackknife_error(-beta.unsqueeze(1) * distortions - rest)};
  // To first order: the bias of log Z is minus half its variance, that of D minus its covariance
  // with the sum.
  point.rate_bias.value = 0.5 * point.log_normalizer.error.square() +
                          beta * k / (k - 1) * (shares.square() * apart).sum(1);
  point.ess.value = ess(log_w);
  return point;
}

/// The curve through points at all temperatures, on the CPU, in the form that files hold.
RateDistortion curve_of(const std::vector<RateDistortion>& points) {
  const auto stacked = [](const std::vector<at::Tensor>& rows) { return at::stack(rows).cpu(); };
  RateDistortion curve = combined(points, stacked);
  std::vector<at::Tensor> betas;
  for (const RateDistortion& point : points) betas.push_back(point.beta);
  curve.beta = stacked(betas);
  return curve;
}

/// Adds the result of the reverse run: its log-weights from the end to each temperature, last
/// first. With w_t the weights at a temperature, E[w_t] = Z_t / Z_1 and E[w_0] = 1 / Z_1: log Z_t =
/// log E[w_t] - log E[w_0].
void add_gap(const std::vector<at::Tensor>& log_ws, RateDistortion& curve) {
  const at::Tensor &to_base = log_ws.back(), rest_of_base = log_rest(log_normalise(to_base).exp());
  std::vector<at::Tensor> values, errors;
  for (auto log_w = log_ws.rbegin(); log_w != log_ws.rend(); ++log_w) {
    values.push_back(log_mean_exp(*log_w) - log_mean_exp(to_base));
    errors.push_back(jackknife_error(log_rest(log_normalise(*log_w).exp()) - rest_of_base));
  }
  curve.gap = {at::stack(values).cpu() - curve.log_normalizer.value,
               at::hypot(at::stack(errors).cpu(), curve.log_normalizer.error)};
}

void require_prior(const Problem& problem) {
  const AffineMap prior = problem.target().prior_base(), &base = problem.base();
  if (!at::equal(prior.loc(), base.loc()) || !at::equal(prior.matrix(), base.matrix()))
    throw argument_error("a curve of rate and distortion is annealed from the prior");
}

Estimate together(const std::vector<Estimate>& parts) {
  Estimate all;
  for (at::Tensor Estimate::*field : {&Estimate::value, &Estimate::std_error, &Estimate::bias,
                                      &Estimate::ess, &Estimate::pareto_k}) {
    std::vector<at::Tensor> rows;
    rows.reserve(parts.size());
    for (const Estimate& part : parts) rows.push_back(part.*field);
    all.*field = at::cat(rows);
  }
  return all;
}

RateDistortionMethod::Curve together(const std::vector<RateDistortionMethod::Curve>& parts) {
  std::vector<Estimate> lower, upper;
  std::vector<at::Tensor> accept_prob;
  std::vector<RateDistortion> curves;
  MethodResult all;
  for (const auto& [part, curve] : parts) {
    lower.push_back(part.estimate);
    if (part.upper) upper.push_back(*part.upper);
    accept_prob.push_back(part.accept_prob);
    curves.push_back(curve);
    all.num_nonfinite += part.num_nonfinite;
    all.cost += part.cost;
  }
  all.estimate = together(lower);
  if (!upper.empty()) all.upper = together(upper);
  all.accept_prob = at::cat(accept_prob);
  return {std::move(all), joined(curves)};
}

CurveSums summed(const CurveValues& values) {
  const at::Tensor mean = values.value.mean(1);
  return {mean, (values.value - mean.unsqueeze(1)).square().sum(1),
          values.error.defined() ? values.error.square().sum(1) : at::zeros_like(mean)};
}

}  // namespace

RateDistortion joined(const std::vector<RateDistortion>& parts) {
  RateDistortion all =
      combined(parts, [](const std::vector<at::Tensor>& columns) { return at::cat(columns, 1); });
  all.beta = parts.front().beta;
  return all;
}

RateDistortionSums sums_of(const RateDistortion& curve) {
  RateDistortionSums sums;
  sums.num_problems = curve.rate.value.size(1);
  sums.beta = curve.beta;
  sums.least_ess = std::get<0>(curve.ess.value.min(1));
  for (size_t i = 0; i < sums.columns().size(); ++i)
    if (const CurveValues& values = curve.*curve.columns()[i].second; values.value.defined())
      sums.*sums.columns()[i].second = summed(values);
  return sums;
}

std::map<std::string, at::Tensor> columns_of(const RateDistortionSums& sums) {
  std::map<std::string, at::Tensor> columns = {{"beta", sums.beta}, {"least_ess", sums.least_ess}};
  for (const auto& [name, column] : sums.columns()) {
    if (!(sums.*column).mean.defined()) continue;
    columns[name] = (sums.*column).mean;
    columns[name + kSquares] = (sums.*column).squares;
    columns[name + kErrors] = (sums.*column).errors;
  }
  return columns;
}

RateDistortionSums sums_from(const std::map<std::string, at::Tensor>& columns, int64_t num_problems,
                             const std::string& source) {
  const auto require = [&](bool holds, const std::string& fault) {
    if (!holds) throw data_error(source + ": " + fault);
  };
  RateDistortionSums sums;
  const auto column = [&](const std::string& name) {
    const auto entry = columns.find(name);
    require(entry != columns.end(), "a curve of rate and distortion has no " + name);
    if (sums.beta.defined())
      require(entry->second.sizes() == sums.beta.sizes(),
              "the columns of a curve differ in length");
    return entry->second;
  };
  const auto all = [](const at::Tensor& holds) { return holds.all().item<bool>(); };
  sums.num_problems = num_problems;
  sums.beta = column("beta");
  const at::Tensor& beta = sums.beta;
  require(beta.numel() >= 2 && all(beta[0] == 0) && all(beta[-1] == 1) &&
              all(beta.slice(0, 1) >= beta.slice(0, 0, -1)),
          "the temperatures of a curve do not rise from 0 to 1");
  sums.least_ess = column("least_ess");
  for (const auto& [name, member] : sums.columns()) {
    if (member == &RateDistortionSums::gap && columns.count(name) == 0) continue;
    sums.*member = {column(name), column(name + kSquares), column(name + kErrors)};
    for (const at::Tensor& squares : {(sums.*member).squares, (sums.*member).errors})
      require(!(squares < 0).any().item<bool>(), "a sum of squares is below 0");
  }
  return sums;
}

RateDistortionSums merged(const std::vector<RateDistortionSums>& parts) {
  RateDistortionSums all = parts.front();
  for (size_t i = 1; i < parts.size(); ++i) {
    const RateDistortionSums& part = parts[i];
    if (!at::equal(all.beta, part.beta) || all.has_gap() != part.has_gap())
      throw data_error("curves of rate and distortion are of different temperatures");
    const auto before = static_cast<double>(all.num_problems),
               more = static_cast<double>(part.num_problems), sum = before + more;
    for (const auto& [name, column] : all.columns()) {
      CurveSums& into = all.*column;
      if (!into.mean.defined()) continue;
      const CurveSums& from = part.*column;
      const at::Tensor shift = from.mean - into.mean;
      into.mean = into.mean + shift * (more / sum);  // [Chan, Golub & LeVeque 1983]
      into.squares = into.squares + from.squares + shift.square() * (before * more / sum);
      into.errors = into.errors + from.errors;
    }
    all.least_ess = at::minimum(all.least_ess, part.least_ess);
    all.num_problems += part.num_problems;
  }
  return all;
}

RateDistortionMethod::RateDistortionMethod(AnnealingParts parts, bool reverse)
    : parts_(std::move(parts)), reverse_(reverse) {
  if (parts_.resampling)
    throw argument_error("a curve of rate and distortion is one of AIS; leave out `resampling`");
  if (parts_.path->needs_learning() || parts_.path->divergence().order() != 0.0)
    throw argument_error(
        "a curve of rate and distortion follows p(z) exp(-beta d(z)), which is the `path` "
        "geometric");
}

RateDistortionMethod::Curve RateDistortionMethod::curve(const Problem& problem, const Plan& plan,
                                                        at::Generator& rng) const {
  if (plan.betas.size(1) != 1)
    throw argument_error(
        "a curve of rate and distortion has means over problems at each temperature; leave out "
        "`plan_per_problem`");
  require_prior(problem);
  // All chains of a problem run at once, so that no chain need be stored: blocks hold problems.
  const int64_t count = problem.num_problems();
  const int64_t block =
      problem.target().can_select() ? chains_per_block(plan.num_particles, problem.dim()) : count;
  std::vector<Curve> parts;
  for (int64_t begin = 0; begin < count; begin += block) {
    const at::Tensor index = at::arange(begin, std::min(begin + block, count),
                                        problem.base().options().dtype(at::kLong));
    parts.push_back(of_block(count <= block ? problem : problem.select(index), plan, rng));
  }
  return parts.size() == 1 ? std::move(parts.front()) : together(parts);
}

MethodResult RateDistortionMethod::estimate(const Problem& problem, const Plan& plan,
                                            at::Generator& rng) const {
  Curve found = curve(problem, plan, rng);
  found.result.columns = columns_of(sums_of(found.curve));
  return std::move(found.result);
}

RateDistortionMethod::Curve RateDistortionMethod::of_block(const Problem& problem, const Plan& plan,
                                                           at::Generator& rng) const {
  std::vector<RateDistortion> points;
  const AnnealResult run =
      anneal(problem, *parts_.path, plan, *parts_.transition, plan.num_particles, rng, nullptr,
             [&](const at::Tensor& beta, const Particles& particles, const at::Tensor& log_w) {
               points.push_back(curve_at(beta, particles, log_w));
             });
  MethodResult result{
      log_normalizer(run.log_w), {}, run.accept_prob.mean(0), run.num_nonfinite, run.cost};
  RateDistortion curve = curve_of(points);
  if (!reverse_) return {std::move(result), std::move(curve)};
  std::vector<at::Tensor> log_ws;
  const AnnealResult back =
      anneal_reverse(problem, *parts_.path, plan, *parts_.transition, plan.num_particles, rng,
                     [&](const at::Tensor&, const Particles&, const at::Tensor& log_w) {
                       log_ws.push_back(log_w);
                     });
  add_gap(log_ws, curve);
  result.upper = reverse_log_normalizer(back.log_w);
  result.accept_prob = 0.5 * (result.accept_prob + back.accept_prob.mean(0));
  result.num_nonfinite += back.num_nonfinite;
  result.cost += back.cost;
  return {std::move(result), std::move(curve)};
}

std::unique_ptr<Method> make_rate_distortion(const std::string& name, const AnnealingParts& parts) {
  Spec spec(name);
  auto method =
      std::make_unique<RateDistortionMethod>(parts, spec.integer("reverse", 0, 1, 0) == 1);
  spec.finish();
  return method;
}

}  // namespace crais
