#include "samplers/coupled.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "core/rng.h"
#include "util/error.h"

namespace crais {
namespace {

constexpr double kSmallStep = 0.4, kSmallShare = 0.2;  // of the large step, and of moves
constexpr int64_t kMostLags = 4, kMostMoves = 256;     // the larger of both

/// The step sizes [P,K,1] of a move.
at::Tensor drawn_steps(const at::Tensor& step_size, double base_share, const Particles& of,
                       at::Generator& rng) {
  const at::Tensor coin = fill_uniform(at::empty_like(of.log_gamma), rng);
  const at::Tensor eps = step_size.unsqueeze(1) * at::where(coin < kSmallShare, kSmallStep, 1.0);
  return eps.masked_fill(coin > 1 - base_share, INFINITY).to(of.e.scalar_type()).unsqueeze(-1);
}

/// The standard deviations of proposals.
at::Tensor scale_of(const at::Tensor& eps) { return eps.masked_fill(eps.isinf(), 1); }

/// The means of proposals: Langevin's, or that of the base, N(0, I).
at::Tensor mean_of(const Particles& from, const at::Tensor& eps) {
  return at::addcmul(from.e, 0.5 * eps.square(), from.grad_log_gamma).masked_fill(eps.isinf(), 0);
}

/// The proposals that pass the Metropolis test of uniform numbers `u` [P,K], made of `noise`.
at::Tensor accepted(const Particles& from, const Particles& to, const at::Tensor& noise,
                    const at::Tensor& eps, const at::Tensor& u) {
  const at::Tensor back = (from.e - mean_of(to, eps)) / scale_of(eps);
  const at::Tensor log_ratio =
      to.log_gamma - from.log_gamma + 0.5 * (squared_norm(noise) - squared_norm(back));
  return log_ratio.isfinite() & (u.log() < log_ratio);
}

Particles moved(const Problem& problem, const Particles& from, const at::Tensor& eps,
                at::Generator& rng) {
  const at::Tensor noise = fill_normal(at::empty_like(from.e), rng);
  const Particles to = problem.evaluate(at::addcmul(mean_of(from, eps), scale_of(eps), noise));
  const at::Tensor u = fill_uniform(at::empty_like(from.log_gamma), rng);
  return where(accepted(from, to, noise, eps, u), to, from);
}

/// Applies `f` to the tensors of particles without momenta.
template <class F>
Particles each(const Particles& particles, const F& f) {
  return {f(particles.e), f(particles.log_q0), f(particles.log_gamma), f(particles.grad_log_gamma),
          at::Tensor()};
}

Particles rows(const Particles& particles, const at::Tensor& index) {
  return each(particles, [&](const at::Tensor& x) { return x.index_select(0, index); });
}

/// The moves [Q] until pairs [Q,1] meet. Pairs that have met make room for the others.
at::Tensor meeting_times(const Problem& problem, at::Tensor step_size, double base_share,
                         Pairs pairs, int64_t most, at::Generator& rng, Cost& cost) {
  const at::Tensor& density = pairs.first.log_gamma;
  at::Tensor moves =
      at::full({density.size(0)}, std::numeric_limits<double>::infinity(), density.options());
  at::Tensor row = at::arange(density.size(0), density.options().dtype(at::kLong));
  Problem part = problem;
  for (int64_t move = 1; move <= most; ++move) {
    pairs = moved_together(part, pairs, drawn_steps(step_size, base_share, pairs.first, rng), rng);
    cost += part.cost_of(2);
    const at::Tensor met = pairs.met.squeeze(1);
    const at::Tensor before = moves.index_select(0, row);
    moves = moves.index_copy(0, row,
                             at::where(met, before.clamp_max(static_cast<double>(move)), before));
    const at::Tensor apart = (~met).nonzero().squeeze(1);
    if (apart.numel() == 0) break;
    if (4 * apart.numel() > 3 * row.numel()) continue;
    row = row.index_select(0, apart);
    step_size = step_size.index_select(0, apart);
    pairs = {rows(pairs.first, apart), rows(pairs.second, apart), pairs.met.index_select(0, apart)};
    part = problem.select(row);
  }
  return moves;
}

}  // namespace

bool has_exact_draws(const Target& target) {
  at::Generator rng = make_generator(0, target.options().device());
  return target.exact_sample(1, rng).has_value();
}

Pairs moved_together(const Problem& problem, const Pairs& pairs, const at::Tensor& eps,
                     at::Generator& rng) {
  const Particles &first = pairs.first, &second = pairs.second;
  const auto uniform = [&] { return fill_uniform(at::empty_like(first.log_gamma), rng); };
  const at::Tensor noise = fill_normal(at::empty_like(first.e), rng);
  const at::Tensor mean = mean_of(first, eps), other_mean = mean_of(second, eps),
                   scale = scale_of(eps);
  // The second chain's noise: what leads to the first one's proposal, or else its mirror image.
  const at::Tensor shift = (mean - other_mean) / scale, same_noise = noise + shift;
  const at::Tensor is_same =
      uniform().log() < 0.5 * (squared_norm(noise) - squared_norm(same_noise));
  const at::Tensor length = shift.square().sum(-1, /*keepdim=*/true);
  const at::Tensor mirrored = noise - 2 * (shift * noise).sum(-1, true) / length * shift;
  const at::Tensor other_noise = choose(is_same, same_noise, mirrored);
  const at::Tensor proposal = at::addcmul(mean, scale, noise);
  const at::Tensor other_proposal =
      choose(is_same, proposal, at::addcmul(other_mean, scale, other_noise));
  const Particles both = problem.evaluate(at::cat({proposal, other_proposal}, 1));
  const int64_t count = proposal.size(1);
  const auto half = [&](int64_t begin) {
    return each(both, [&](const at::Tensor& x) { return x.narrow(1, begin, count).contiguous(); });
  };
  // A batch may round equal points in different ways.
  const Particles to = half(0), other_to = where(is_same, to, half(count));
  const at::Tensor u = uniform();
  const at::Tensor takes = accepted(first, to, noise, eps, u),
                   other_takes = accepted(second, other_to, other_noise, eps, u);
  const at::Tensor together = (is_same & takes & other_takes) | pairs.met;
  const Particles now = where(takes, to, first);
  return {now, where(together, now, where(other_takes, other_to, second)), together};
}

CoupledDraws coupled_draws(const Problem& problem, const at::Tensor& step_size, double base_share,
                           const at::Tensor& first, const at::Tensor& second, int64_t lag,
                           at::Generator& rng) {
  const c10::NoGradGuard no_grad;
  if (!problem.target().traits().can_select)
    throw argument_error("chains are coupled pair by pair, and this target cannot be divided");
  const int64_t dim = problem.dim(), pairs = first.size(0) * first.size(1);
  Particles ahead = problem.evaluate(first);
  for (int64_t move = 0; move < lag; ++move)
    ahead = moved(problem, ahead, drawn_steps(step_size, base_share, ahead, rng), rng);
  const Particles behind = problem.evaluate(second);
  CoupledDraws draws{
      problem.base().to_z(ahead.e), {}, {}, (2 + lag) * problem.cost_of(first.size(1))};
  // Each pair is a row. A block of rows bounds the memory of their bases.
  constexpr int64_t kNumbers = int64_t{1} << 25, kRows = 1024;
  const int64_t block = std::clamp<int64_t>(kNumbers / (dim * dim), 1, kRows);
  const auto as_rows = [&](const Particles& particles, const at::Tensor& row) {
    return rows(each(particles,
                     [&](const at::Tensor& x) {
                       return x.dim() == 3 ? x.reshape({pairs, 1, dim}) : x.reshape({pairs, 1});
                     }),
                row);
  };
  std::vector<at::Tensor> moves;
  for (int64_t begin = 0; begin < pairs; begin += block) {
    const at::Tensor row =
        at::arange(begin, std::min(begin + block, pairs), step_size.options().dtype(at::kLong));
    const at::Tensor owner = at::floor_divide(row, first.size(1));
    const at::Tensor apart = at::zeros({row.numel(), 1}, step_size.options().dtype(at::kBool));
    moves.push_back(meeting_times(problem.select(owner), step_size.index_select(0, owner),
                                  base_share, {as_rows(ahead, row), as_rows(behind, row), apart},
                                  std::max(kMostLags * lag, kMostMoves), rng, draws.cost));
  }
  draws.moves = at::cat(moves).view({first.size(0), first.size(1)});
  draws.distance = (draws.moves / static_cast<double>(lag)).ceil() - 1;
  return draws;
}

}  // namespace crais
