// The curve of rate and distortion from the chains of one anneal.          [Huang et al. 2020]
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

constexpr const char *kSquares = "_squares", *kErrors = "_errors";  // of a column: see CurveSums
constexpr double kLeastRest = 1e-16;  // of a sum without one of its shares: its resolution

/// Of a statistic from its values [P,K] with each chain left out: [P] standard errors.
at::Tensor jackknife_error(const at::Tensor& left_out) {
  const auto k = static_cast<double>(left_out.size(1));
  if (k < 2) return at::full({left_out.size(0)}, NAN, left_out.options());
  return ((k - 1) / k * (left_out - left_out.mean(1, /*keepdim=*/true)).square().sum(1)).sqrt();
}

/// log of the sum of all weights but one's, less that of all, for each: [P,K].
at::Tensor log_rest(const at::Tensor& shares) { return (1 - shares).clamp_min(kLeastRest).log(); }

/// Collects temperature by temperature; rows that are [P] become [T+1,P].
class CurveRecorder {
 public:
  void hear(const at::Tensor& beta, const Particles& particles, const at::Tensor& log_w) {
    const at::Tensor d = particles.log_q0 - particles.log_gamma;
    const at::Tensor shares = log_normalise(log_w).exp(), rest = log_rest(shares);
    const at::Tensor log_normalizer = log_mean_exp(log_w);
    // A particle without weight may have a distortion without bound.
    const at::Tensor shared = at::where(shares == 0, 0.0, shares * d);
    const at::Tensor distortion = shared.sum(1);
    const at::Tensor apart = at::where(shares == 0, 0.0, d - distortion.unsqueeze(1));
    const at::Tensor distortions = -shares * apart / (1 - shares).clamp_min(kLeastRest);
    const at::Tensor log_error = jackknife_error(rest);
    const auto k = static_cast<double>(log_w.size(1));
    beta_.push_back(beta[0]);
    rate_.push_back(-beta * distortion - log_normalizer);
    rate_error_.push_back(jackknife_error(-beta.unsqueeze(1) * distortions - rest));
    // To first order: of log Z minus half its variance, of D minus its covariance with the sum.
    rate_bias_.push_back(0.5 * log_error.square() +
                         beta * k / (k - 1) * (shares.square() * apart).sum(1));
    distortion_.push_back(distortion);
    distortion_error_.push_back(jackknife_error(distortions));
    log_normalizer_.push_back(log_normalizer);
    log_error_.push_back(log_error);
    ess_.push_back(ess(log_w));
  }

  /// On the CPU, as what files hold.
  RateDistortion finish() const {
    const auto rows = [](const std::vector<at::Tensor>& values) { return at::stack(values).cpu(); };
    return {rows(beta_),
            rows(rate_),
            rows(rate_error_),
            rows(rate_bias_),
            rows(distortion_),
            rows(distortion_error_),
            rows(log_normalizer_),
            rows(log_error_),
            rows(ess_),
            {},
            {}};
  }

 private:
  std::vector<at::Tensor> beta_, rate_, rate_error_, rate_bias_, distortion_, distortion_error_,
      log_normalizer_, log_error_, ess_;
};

/// Adds what the way back has found: its log-weights from the end to each temperature, last first.
/// With w_t the weights there, E[w_t] = Z_t / Z_1 and E[w_0] = 1 / Z_1: log Z_t = log E[w_t] - log
/// E[w_0].
void add_gap(const std::vector<at::Tensor>& log_ws, RateDistortion& curve) {
  const at::Tensor &to_base = log_ws.back(), rest_of_base = log_rest(log_normalise(to_base).exp());
  std::vector<at::Tensor> values, errors;
  for (auto log_w = log_ws.rbegin(); log_w != log_ws.rend(); ++log_w) {
    values.push_back(log_mean_exp(*log_w) - log_mean_exp(to_base));
    errors.push_back(jackknife_error(log_rest(log_normalise(*log_w).exp()) - rest_of_base));
  }
  curve.gap = at::stack(values).cpu() - curve.log_normalizer;
  curve.gap_error = at::hypot(at::stack(errors).cpu(), curve.log_normalizer_error);
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

/// Means over problems [T+1,P]; errors may be undefined.
CurveSums summed(const at::Tensor& values, const at::Tensor& errors) {
  const at::Tensor mean = values.mean(1);
  return {mean, (values - mean.unsqueeze(1)).square().sum(1),
          errors.defined() ? errors.square().sum(1) : at::zeros_like(mean)};
}

}  // namespace

RateDistortion joined(const std::vector<RateDistortion>& parts) {
  RateDistortion all;
  all.beta = parts.front().beta;
  for (at::Tensor RateDistortion::*field :
       {&RateDistortion::rate, &RateDistortion::rate_error, &RateDistortion::rate_bias,
        &RateDistortion::distortion, &RateDistortion::distortion_error,
        &RateDistortion::log_normalizer, &RateDistortion::log_normalizer_error,
        &RateDistortion::ess, &RateDistortion::gap, &RateDistortion::gap_error}) {
    std::vector<at::Tensor> columns;
    for (const RateDistortion& part : parts)
      if ((part.*field).defined()) columns.push_back(part.*field);
    if (!columns.empty()) all.*field = at::cat(columns, 1);
  }
  return all;
}

std::vector<std::pair<std::string, CurveSums RateDistortionSums::*>> RateDistortionSums::columns()
    const {
  std::vector<std::pair<std::string, CurveSums RateDistortionSums::*>> all = {
      {"rate", &RateDistortionSums::rate},
      {"distortion", &RateDistortionSums::distortion},
      {"log_normalizer", &RateDistortionSums::log_normalizer},
      {"rate_bias", &RateDistortionSums::rate_bias},
      {"ess", &RateDistortionSums::ess}};
  if (has_gap()) all.emplace_back("gap", &RateDistortionSums::gap);
  return all;
}

RateDistortionSums sums_of(const RateDistortion& curve) {
  RateDistortionSums sums{curve.rate.size(1),
                          curve.beta,
                          std::get<0>(curve.ess.min(1)),
                          summed(curve.rate, curve.rate_error),
                          summed(curve.distortion, curve.distortion_error),
                          summed(curve.log_normalizer, curve.log_normalizer_error),
                          summed(curve.rate_bias, {}),
                          summed(curve.ess, {}),
                          {}};
  if (curve.gap.defined()) sums.gap = summed(curve.gap, curve.gap_error);
  return sums;
}

std::map<std::string, at::Tensor> columns_of(const RateDistortionSums& sums) {
  std::map<std::string, at::Tensor> columns = {{"beta", sums.beta}, {"least_ess", sums.least_ess}};
  for (const auto& [name, column] : sums.columns()) {
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
    const auto found = columns.find(name);
    require(found != columns.end(), "a curve of rate and distortion has no " + name);
    if (sums.beta.defined())
      require(found->second.sizes() == sums.beta.sizes(),
              "the columns of a curve differ in length");
    return found->second;
  };
  const auto all = [](const at::Tensor& holds) { return holds.all().item<bool>(); };
  sums.num_problems = num_problems;
  sums.beta = column("beta");
  const at::Tensor& beta = sums.beta;
  require(beta.numel() >= 2 && all(beta[0] == 0) && all(beta[-1] == 1) &&
              all(beta.slice(0, 1) >= beta.slice(0, 0, -1)),
          "the temperatures of a curve do not rise from 0 to 1");
  sums.least_ess = column("least_ess");
  if (columns.count("gap") > 0) sums.gap.mean = beta;  // it is one of the columns
  for (const auto& [name, member] : sums.columns()) {
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
  // All chains of a problem at once, that nothing of a chain has to be kept: blocks of problems.
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
  CurveRecorder recorder;
  const AnnealResult run =
      anneal(problem, *parts_.path, plan, *parts_.transition, plan.num_particles, rng, nullptr,
             [&](const at::Tensor& beta, const Particles& particles, const at::Tensor& log_w) {
               recorder.hear(beta, particles, log_w);
             });
  MethodResult result{
      log_normalizer(run.log_w), {}, run.accept_prob.mean(0), run.num_nonfinite, run.cost};
  RateDistortion curve = recorder.finish();
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
