#include "samplers/anneal.h"

#include <c10/core/GradMode.h>

#include <limits>
#include <vector>

#include "core/log_math.h"
#include "core/plain.h"
#include "samplers/divergence.h"
#include "samplers/mover.h"
#include "util/error.h"

namespace crais {
namespace {

/// Smaller log-weights belong to chains that started at zero density.
constexpr double kNoWeight = 1e-10 * Problem::kNothing;

/// The log-weights after a change of temperature.
at::Tensor reweighted(const at::Tensor& log_w, const Path& path, const at::Tensor& from,
                      const at::Tensor& to, const Particles& particles) {
  return elementwise([](const auto& weight, const auto& after,
                        const auto& before) { return weight + (after - before); },
                     log_w, annealed_log_density(path, to, particles),
                     annealed_log_density(path, from, particles));
}

[[noreturn]] void throw_unfinished(const at::Tensor& beta, int64_t steps) {
  const auto reached = beta.min().item<double>();
  throw ScheduleError(ScheduleError::Reason::kUnfinished, reached, steps,
                      c10::str("the schedule has reached beta = ", reached, " after ", steps,
                               " steps; raise `max_steps`, or ask for larger steps"));
}

/// Cost of one evaluation and `num_steps` transitions of every particle.
Cost cost_of_moves(const Problem& problem, const Transition& transition, int64_t num_particles,
                   int64_t steps) {
  return (1 + steps * transition.evaluations_per_step()) * problem.cost_of(num_particles);
}

/// Resamples the problems that are due: their particles become copies, and each weight becomes the
/// mean weight.
void resample(const Resampling& resampling, AnnealResult& run, at::Generator& rng) {
  Genealogy& genealogy = run.genealogy;
  const at::Tensor due = resampling.due(run.log_w, genealogy.last_ess).unsqueeze(1);
  if (!due.any().item<bool>()) return;
  genealogy.last_ess = at::where(due.squeeze(1), ess(run.log_w), genealogy.last_ess);
  const at::Tensor same =
      at::arange(run.log_w.size(1), genealogy.roots.options()).expand_as(genealogy.roots);
  const at::Tensor index = at::where(due, resampling.ancestors(run.log_w, rng), same);
  run.particles = gather(run.particles, index);
  genealogy.roots = genealogy.roots.gather(1, index);
  genealogy.num_resamplings = genealogy.num_resamplings + due.squeeze(1);
  run.log_w = at::where(due, log_mean_exp(run.log_w).unsqueeze(1), run.log_w);
}

}  // namespace

AnnealResult anneal(const Problem& problem, const Path& path, const ScheduleRule& rule,
                    const Transition& transition, StepSizes& step_sizes,
                    const AnnealOptions& options, at::Generator& rng) {
  const c10::NoGradGuard no_grad;
  const at::TensorOptions wide = problem.base().options().dtype(at::kDouble);
  AnnealResult run{.particles = problem.start(options.num_particles, rng),
                   .log_w = at::zeros({problem.num_problems(), options.num_particles}, wide)};
  at::Tensor beta = at::zeros({problem.num_problems()}, wide);
  run.genealogy = {at::arange(options.num_particles, wide.dtype(at::kLong)).expand_as(run.log_w),
                   beta, at::ones_like(beta),
                   options.resampling != nullptr && options.resampling->draws_independently()};
  std::vector<at::Tensor> betas = {beta}, used_step_sizes, accept_probs, fractions;
  at::Tensor num_nonfinite = at::zeros({}, wide.dtype(at::kLong));
  DivergenceRecord divergence(path);
  BarrierRecord barrier(path);
  Mover move(problem, path, transition, rng);
  const auto record = [&] {
    if (!options.record) return;
    divergence.add(beta, run.particles, run.log_w);
    barrier.add(beta, run.particles, run.log_w);
    fractions.push_back(ess(run.log_w));
  };
  record();

  // On a device, the question whether the particles have arrived would wait for the device.
  const at::Tensor known_betas = rule.betas();
  const auto arrived = [&](int64_t steps) {
    return known_betas.defined() ? steps == known_betas.size(0) - 1
                                 : (beta == 1).all().item<bool>();
  };
  for (int64_t index = 0; !arrived(index); ++index) {
    const at::Tensor next = [&] {
      try {
        if (rule.is_adaptive() && index == options.max_steps) throw_unfinished(beta, index);
        return rule.next({index, beta, run.particles, run.log_w, options.shared}, path);
      } catch (ScheduleError& error) {
        error.spent += cost_of_moves(problem, transition, options.num_particles, index);
        throw;
      }
    }();
    run.log_w = reweighted(run.log_w, path, beta, next, run.particles);
    beta = next;
    if (options.resampling) resample(*options.resampling, run, rng);

    const at::Tensor step_size = step_sizes.at(index).to(wide.device()).expand_as(beta);
    const Moved moved = move(run.particles, beta, step_size);
    run.particles = moved.particles;
    num_nonfinite = num_nonfinite + moved.num_nonfinite;
    const at::Tensor accept_prob = moved.accept_prob.mean(-1);
    step_sizes.observe(index, accept_prob);
    record();

    betas.push_back(beta);
    used_step_sizes.push_back(step_size);
    accept_probs.push_back(accept_prob);
  }
  run.betas = at::stack(betas);
  run.step_sizes = at::stack(used_step_sizes);
  run.accept_prob = at::stack(accept_probs);
  run.num_nonfinite = num_nonfinite.item<int64_t>();
  run.log_w =
      run.log_w.masked_fill(run.log_w < kNoWeight, -std::numeric_limits<double>::infinity()) +
      problem.log_center().unsqueeze(1);
  run.cost = cost_of_moves(problem, transition, options.num_particles, run.step_sizes.size(0));
  if (options.record) {
    run.divergence = divergence.finish();
    run.ess = at::stack(fractions);
    run.barrier = barrier.finish();
  }
  return run;
}

AnnealResult anneal_reverse(const Problem& problem, const Path& path, const at::Tensor& betas,
                            const Transition& transition, const StepSizes& step_sizes,
                            const at::Tensor& e, at::Generator& rng) {
  const c10::NoGradGuard no_grad;
  const at::TensorOptions wide = problem.base().options().dtype(at::kDouble);
  const auto beta_at = [&](int64_t index) {
    return betas[index].to(wide.device()).expand({problem.num_problems()});
  };
  AnnealResult run{.particles = problem.evaluate(e),
                   .log_w = at::zeros({e.size(0), e.size(1)}, wide)};
  std::vector<at::Tensor> accept_probs;
  at::Tensor num_nonfinite = at::zeros({}, wide.dtype(at::kLong));
  Mover move(problem, path, transition, rng);
  for (int64_t index = betas.size(0) - 2; index >= 0; --index) {
    const at::Tensor beta = beta_at(index + 1);
    const at::Tensor step_size = step_sizes.at(index).to(wide.device()).expand_as(beta);
    const Moved moved = move(run.particles, beta, step_size);
    run.particles = moved.particles;
    num_nonfinite = num_nonfinite + moved.num_nonfinite;
    accept_probs.push_back(moved.accept_prob.mean(-1));
    run.log_w = reweighted(run.log_w, path, beta, beta_at(index), run.particles);
  }
  run.accept_prob = at::stack(accept_probs);
  run.num_nonfinite = num_nonfinite.item<int64_t>();
  run.log_w = run.log_w - problem.log_center().unsqueeze(1);
  run.cost = cost_of_moves(problem, transition, e.size(1), betas.size(0) - 1);
  return run;
}

}  // namespace crais
