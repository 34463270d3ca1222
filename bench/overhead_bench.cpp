// overhead_bench [ROUNDS [CHAINS]]: what is done around evaluations, in units of one evaluation of
// the same particles: 64 images with 16 chains, or as many as asked. One thread; a table, then
// JSON.
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "bases/base.h"
#include "cli/program.h"
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
  constexpr int64_t kImages = 64;
  const int64_t rounds = argc > 1 ? std::atol(argv[1]) : 31;
  const int64_t chains = argc > 2 ? std::atol(argv[2]) : 16;
  at::set_num_threads(1);
  if (std::getenv("CRAIS_DEFAULT_MALLOC") == nullptr) keep_freed_memory();
  const c10::NoGradGuard no_grad;
  const Vae vae = make_vae({}, 1);
  at::Generator rng = make_counting_generator(1);
  const at::Tensor images = simulate(vae, kImages, rng).images;
  const DecoderPosterior target(vae, images);
  const AffineMap base = *target.amortised_base();
  const Problem problem(borrow(target), base);
  const Particles particles = problem.start(chains, rng);
  const at::Tensor z = base.to_z(particles.e), mode = base.loc();
  const at::Tensor log_w = particles.log_gamma - particles.log_q0;
  const at::Tensor beta = at::full({kImages}, 0.3, at::kDouble), next = beta + 0.02;
  const auto path = PathRegistry::instance().make("path", "geometric");
  const auto laplace = BaseRegistry::instance().make("base", "laplace");

  std::vector<Contender> contenders = {{"evaluation", [&] { target.evaluate(z); }},
                                       {"one reweighting", [&] {
                                          const auto at = [&](const at::Tensor& b) {
                                            return annealed_log_density(*path, b, particles);
                                          };
                                          (void)(log_w + at(next) - at(beta));
                                        }}};
  std::vector<std::unique_ptr<ScheduleRule>> rules;
  for (const char* spec : {"cess:0.9", "ess:0.9", "constant-rate:1", "constant-length:0.5"}) {
    rules.push_back(ScheduleRegistry::instance().make("schedule", spec, ScheduleOptions{}));
    const ScheduleRule* rule = rules.back().get();
    contenders.push_back({std::string("next temperature, ") + spec, [&, rule] {
                            rule->next({0, at::zeros_like(beta), particles, at::zeros_like(log_w),
                                        /*shared=*/true},
                                       *path);
                          }});
  }
  std::vector<std::unique_ptr<Resampling>> resamplings;
  for (const char* spec : {"systematic", "multinomial"}) {
    resamplings.push_back(ResamplingRegistry::instance().make("resampling", spec));
    const Resampling* resampling = resamplings.back().get();
    contenders.push_back({std::string("resampling, ") + spec, [&, resampling] {
                            gather(particles, resampling->ancestors(log_w, rng));
                          }});
  }
  contenders.push_back({"curvature (Laplace's)", [&] { target.curvature(mode); }});
  contenders.push_back({"evaluation, an image each", [&] { target.evaluate(z.slice(1, 0, 1)); }});
  contenders.push_back({"Laplace base", [&] { laplace->build(target, rng); }});
  const Free free(kImages, chains, target.dim());
  const AffineMap fitted = laplace->build(target, rng).map;
  constexpr int64_t kSteps = 32;
  const Plan plan = freeze(
      *ScheduleRegistry::instance().make("schedule", "linear", ScheduleOptions{kSteps}), 0.2);
  std::vector<std::unique_ptr<Transition>> transitions;
  std::vector<std::string> around;
  for (const char* spec : {"ghmc:0.8", "hmc", "mala", "random-walk"}) {
    transitions.push_back(TransitionRegistry::instance().make("kernel", spec, {}));
    const Transition* transition = transitions.back().get();
    around.push_back(std::string("32 transitions but evaluations, ") + spec);
    contenders.push_back({around.back(), [&, transition] {
                            anneal(Problem(borrow(free), fitted), *path, plan, *transition, chains,
                                   rng);
                          }});
  }
  contenders.push_back({"drawing momenta", [&] { fill_normal(at::empty_like(z), rng); }});
  contenders.push_back({"to z, Laplace's base", [&] { fitted.to_z(particles.e); }});
  contenders.push_back(
      {"gradient to e, Laplace's base", [&] { fitted.pull_back(particles.grad_log_gamma); }});
  const auto times = medians(contenders, rounds);
  const double unit = times.at("evaluation");
  nlohmann::json report = {{"machine", machine()}, {"evaluator", target.evaluator()}};
  std::printf("%s; evaluator %s, %ld images x %ld chains\n", machine().c_str(),
              target.evaluator().c_str(), long(kImages), long(chains));
  for (const Contender& contender : contenders) {
    const double time = times.at(contender.name);
    std::printf("  %-38s %9.3f ms  %8.4f evaluations of all  %8.1f of one particle an image\n",
                contender.name.c_str(), 1e3 * time, time / unit, chains * time / unit);
    report["milliseconds"][contender.name] = 1e3 * time;
  }
  for (const std::string& name : around)
    std::printf("  %-38s %9.3f us a particle and transition\n", name.c_str(),
                1e6 * times.at(name) / double(kSteps * kImages * chains));
  std::printf("counted for a Laplace base: %.1f evaluations an image\n",
              double(laplace->build(target, rng).cost.densities) / kImages);
  std::printf("\n%s\n", report.dump(2).c_str());
}
