// device_bench [DEVICE [ROUNDS [BATCH...]]]: evaluators and annealing on a device (auto, cpu, cuda,
// cuda:N) in units of its own matrix products, by the wall clock. A table, then JSON.
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <stdlib.h>
#include <torch/cuda.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/parse.h"
#include "cli/program.h"
#include "core/log_math.h"
#include "core/rng.h"
#include "paths/power_mean.h"
#include "samplers/mover.h"
#include "samplers/plan.h"
#include "targets/decoder_posterior.h"
#include "util/error.h"
#include "yardstick.h"

namespace crais::bench {
namespace {

constexpr int64_t kParticles = 16;  // of each image
constexpr int64_t kSteps = 64;
constexpr double kStepSize = 0.15;

struct Report {
  at::Device device;
  nlohmann::json found;

  void add(const std::string& group, const std::vector<Contender>& contenders, int64_t rounds,
           double evaluations, double flops) {
    const auto times = medians(contenders, rounds, device);
    const double unit = times.at(contenders[0].name);
    std::printf("\n%s: floor %.4f us an evaluation, %.0f GFLOP/s\n", group.c_str(),
                1e6 * unit / evaluations, flops / unit / 1e9);
    found[group]["floor_gflops"] = flops / unit / 1e9;
    for (const Contender& contender : contenders) {
      const double time = times.at(contender.name);
      std::printf(
          "  %-24s %9.3f ms  %8.4f us an evaluation  %7.3f F  %5.1f%% of the floor's rate\n",
          contender.name.c_str(), 1e3 * time, 1e6 * time / evaluations, time / unit,
          100 * unit / time);
      found[group]["milliseconds"][contender.name] = 1e3 * time;
      found[group]["floors"][contender.name] = time / unit;
    }
  }
};

/// One evaluation of a batch.
void evaluations(const Vae& vae, int64_t batch, int64_t rounds, Report& report) {
  const c10::NoGradGuard no_grad;
  at::Generator rng = make_generator(1, report.device);
  const at::Tensor images = simulate(vae, batch / kParticles, rng).images;
  const DecoderPosterior target(vae, images, {}, nullptr);
  const at::Tensor z = at::empty({batch / kParticles, kParticles, target.dim()}, images.options())
                           .normal_(0, 1, rng);
  GemmFloor floor(vae.decoder, batch);
  report.add("batch " + std::to_string(batch),
             {{"floor", [&] { floor.run(); }},
              {"aten", [&] { target.evaluate(z); }},
              {"aten value", [&] { target.log_density(z); }}},
             rounds, double(batch), floor.flops());
}

/// Annealing end to end, and whether it finds what the CPU finds.
void annealing(const Vae& vae, int64_t num_images, int64_t rounds, Report& report) {
  const c10::NoGradGuard no_grad;
  at::Generator drawing = make_generator(1);
  const Vae here = vae.to(at::kCPU, at::kFloat);
  const at::Tensor images = simulate(here, num_images, drawing).images;
  const DecoderPosterior target(vae, images.to(report.device)), reference(here, images);
  const AffineMap base = *target.amortised_base(), its_base = *reference.amortised_base();
  const auto path = make_geometric_path();
  const auto rule =
      ScheduleRegistry::instance().make("schedule", "linear", ScheduleOptions{kSteps});
  const auto transition = TransitionRegistry::instance().make("kernel", "hmc", TransitionOptions{});
  const Plan plan = freeze(*rule, kStepSize);
  at::Generator rng = make_generator(2, report.device);
  const auto run = [&](const Target& on, const AffineMap& from, at::Generator& stream) {
    return anneal(Problem(borrow(on), from), *path, plan, *transition, kParticles, stream);
  };
  const auto with_graphs = [&](const char* wish) {
    ::setenv("CRAIS_CUDA_GRAPHS", wish, 1);
    run(target, base, rng);
    ::unsetenv("CRAIS_CUDA_GRAPHS");
  };
  GemmFloor floor(vae.decoder, num_images * kParticles);
  std::vector<Contender> contenders = {{"floor",
                                        [&] {
                                          for (int64_t i = 0; i <= kSteps; ++i) floor.run();
                                        }},
                                       {"anneal", [&] { with_graphs("0"); }}};
  if (make_recorder(rng)) contenders.push_back({"anneal, graphs", [&] { with_graphs("1"); }});
  const std::string group = "annealing " + std::to_string(num_images) + " images";
  report.add(group, contenders, rounds, double((kSteps + 1) * num_images * kParticles),
             double(kSteps + 1) * floor.flops());

  at::Generator its_rng = make_generator(3);
  const at::Tensor apart = log_mean_exp(run(target, base, rng).log_w).cpu() -
                           log_mean_exp(run(reference, its_base, its_rng).log_w);
  const double error = apart.std().item<double>() / std::sqrt(double(num_images));
  std::printf("  mean log p(x) less the CPU's: %.4f +- %.4f\n", apart.mean().item<double>(), error);
  report.found[group]["less_the_cpus"] = {apart.mean().item<double>(), error};
}

}  // namespace
}  // namespace crais::bench

int main(int argc, char** argv) {
  using namespace crais;
  using namespace crais::bench;
  try {
    Report report{parse_device(argc > 1 ? argv[1] : "auto"), {}};
    const int64_t rounds = argc > 2 ? std::atol(argv[2]) : 15;
    std::vector<int64_t> batches;
    for (int i = 3; i < argc; ++i) batches.push_back(std::atol(argv[i]));
    if (batches.empty()) batches = {1024, 8192, 65536};
    at::set_num_threads(1);
    if (std::getenv("CRAIS_DEFAULT_MALLOC") == nullptr) keep_freed_memory();
    const Vae vae = make_vae({}, 1).to(report.device, at::kFloat);
    report.found["machine"] = machine();
    report.found["device"] = report.device.str();
    std::printf("%s, on %s\n", machine().c_str(), report.device.str().c_str());
    for (const int64_t batch : batches) {
      evaluations(vae, batch, rounds, report);
      annealing(vae, batch / kParticles, std::max<int64_t>(1, rounds / 3), report);
    }
    std::printf("\n%s\n", report.found.dump(2).c_str());
    return 0;
  } catch (const Error& error) {
    std::cerr << "device_bench: " << error.what() << "\n";
    return exit_code(error.kind());
  }
}
