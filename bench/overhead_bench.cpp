// overhead_bench [ROUNDS [CHAINS]]: what is done around evaluations, in units of one evaluation of
// the same particles: 64 images with 16 chains, or as many as asked. Tables, then JSON.
#include <c10/core/GradMode.h>

#include "bases/base.h"
#include "core/rng.h"
#include "samplers/plan.h"
#include "targets/decoder_posterior.h"
#include "yardstick.h"

namespace crais::bench {
namespace {

/// Evaluations that cost nothing: what is left of an anneal is what surrounds them.
class Free : public Target {
 public:
  Free(int64_t problems, int64_t particles, int64_t dim)
      : found_{at::zeros({problems, particles}, at::kDouble),
               at::zeros({problems, particles, dim})} {}
  int64_t num_problems() const override { return found_.grad.size(0); }
  int64_t dim() const override { return found_.grad.size(2); }
  at::TensorOptions options() const override { return found_.grad.options(); }
  at::Tensor log_density(const at::Tensor& /*z*/) const override { return found_.log_density; }
  Evaluation evaluate(const at::Tensor& /*z*/) const override { return found_; }

 private:
  Evaluation found_;
};

}  // namespace
}  // namespace crais::bench

int main(int argc, char** argv) {
  using namespace crais;
  using namespace crais::bench;
  constexpr int64_t kImages = 64, kSteps = 32;
  const Arguments arguments = arguments_of(argc, argv, 31);
  const int64_t chains = arguments.numbers.empty() ? 16 : arguments.numbers[0];
  const c10::NoGradGuard no_grad;
  const Vae vae = make_vae({}, 1);
  at::Generator rng = make_counting_generator(1);
  const DecoderPosterior target(vae, simulate(vae, kImages, rng).images);
  const AffineMap base = *target.amortised_base();
  const Particles particles = Problem(borrow(target), base).start(chains, rng);
  const at::Tensor z = base.to_z(particles.e), mode = base.loc();
  const at::Tensor log_w = particles.log_gamma - particles.log_q0;
  const at::Tensor beta = at::full({kImages}, 0.3, at::kDouble), next = beta + 0.02;
  const auto path = PathRegistry::instance().make("path", "geometric");
  const auto laplace = BaseRegistry::instance().make("base", "laplace");
  const AffineMap fitted = laplace->build(target, rng).map;

  std::vector<Contender> contenders = {
      {"evaluation", [&] { target.evaluate(z); }},
      {"one reweighting",
       [&] {
         (void)(log_w + annealed_log_density(*path, next, particles) -
                annealed_log_density(*path, beta, particles));
       }},
      {"curvature (Laplace's)", [&] { target.curvature(mode); }},
      {"evaluation, an image each", [&] { target.evaluate(z.slice(1, 0, 1)); }},
      {"Laplace base", [&] { laplace->build(target, rng); }},
      {"drawing momenta", [&] { fill_normal(at::empty_like(z), rng); }},
      {"to z, Laplace's base", [&] { fitted.to_z(particles.e); }},
      {"gradient to e, Laplace's base", [&] { fitted.pull_back(particles.grad_log_gamma); }}};
  for (const std::string spec : {"cess:0.9", "ess:0.9", "constant-rate:1", "constant-length:0.5"})
    contenders.push_back(
        {"next temperature, " + spec,
         [&, rule = std::shared_ptr<ScheduleRule>(
                 ScheduleRegistry::instance().make("schedule", spec, ScheduleOptions{}))] {
           rule->next({0, at::zeros_like(beta), particles, at::zeros_like(log_w), /*shared=*/true},
                      *path);
         }});
  for (const std::string spec : {"systematic", "multinomial"})
    contenders.push_back(
        {"resampling, " + spec,
         [&, resampling = std::shared_ptr<Resampling>(ResamplingRegistry::instance().make(
                 "resampling", spec))] { gather(particles, resampling->ancestors(log_w, rng)); }});
  Report report;
  report.add("64 images, " + target.evaluator(), contenders, arguments.rounds, kImages * chains);

  const Free free(kImages, chains, target.dim());
  const Plan plan = freeze(
      *ScheduleRegistry::instance().make("schedule", "linear", ScheduleOptions{kSteps}), 0.2);
  contenders.clear();
  for (const std::string spec : {"ghmc:0.8", "hmc", "mala", "random-walk"})
    contenders.push_back({spec, [&, transition = std::shared_ptr<Transition>(
                                        TransitionRegistry::instance().make("kernel", spec, {}))] {
                            anneal(Problem(borrow(free), fitted), *path, plan, *transition, chains,
                                   rng);
                          }});
  report.add("32 transitions but evaluations", contenders, arguments.rounds,
             kSteps * kImages * chains);
}
