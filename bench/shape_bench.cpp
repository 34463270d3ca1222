// shape_bench [ROUNDS]: what annealing costs for other decoders, numbers of chains, images and
// temperatures, per evaluation of a particle and in units of its matrix products. One thread;
// tables, then JSON.
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "core/rng.h"
#include "kernels/fused_decoder.h"
#include "samplers/blocks.h"
#include "targets/decoder_posterior.h"
#include "yardstick.h"

namespace crais::bench {
namespace {

struct Shape {
  int64_t latent = 50, hidden = 200, images = 64, chains = 16, steps = 16;
};

/// An annealing run and its (M + 1) times six products, ready to be timed.
class Run {
 public:
  explicit Run(const Shape& shape) : shape_(shape), vae_(make_vae(architecture(shape), 1)) {
    images_ = simulate(vae_, shape.images, rng_).images;
    target_ = std::make_unique<DecoderPosterior>(vae_, images_);
    problem_ = std::make_unique<Problem>(borrow(*target_), *target_->amortised_base());
    floor_ = std::make_unique<GemmFloor>(vae_.decoder, shape.images * shape.chains);
    const auto rule =
        ScheduleRegistry::instance().make("schedule", "linear", ScheduleOptions{shape.steps});
    plan_ = freeze(*rule, 0.15);
  }

  void products() {
    for (int64_t i = 0; i <= shape_.steps; ++i) floor_->run();
  }
  void anneal() { anneal_in_blocks(*problem_, *path_, plan_, *transition_, shape_.chains, rng_); }
  double evaluations() const { return double((shape_.steps + 1) * shape_.images * shape_.chains); }
  std::string evaluator() const { return target_->evaluator(); }

 private:
  static VaeArchitecture architecture(const Shape& shape) {
    VaeArchitecture a;
    a.latent = shape.latent;
    a.hidden = {shape.hidden, shape.hidden};
    return a;
  }

  Shape shape_;
  Vae vae_;
  at::Generator rng_ = make_generator(1);
  at::Tensor images_;
  std::unique_ptr<DecoderPosterior> target_;
  std::unique_ptr<Problem> problem_;
  std::unique_ptr<GemmFloor> floor_;
  std::unique_ptr<Path> path_ = PathRegistry::instance().make("path", "geometric");
  std::unique_ptr<Transition> transition_ =
      TransitionRegistry::instance().make("kernel", "ghmc:0.8", TransitionOptions{});
  Plan plan_;
};

/// A table of one quantity; returns [quantity, milliseconds] of each row.
nlohmann::json table(const std::string& quantity, const std::vector<int64_t>& values,
                     int64_t Shape::*member, int64_t rounds, Shape shape = {}) {
  std::vector<std::unique_ptr<Run>> runs;
  std::vector<Contender> contenders;
  for (const int64_t value : values) {
    shape.*member = value;
    runs.push_back(std::make_unique<Run>(shape));
    Run* run = runs.back().get();
    contenders.push_back({"products " + std::to_string(value), [run] { run->products(); }});
    contenders.push_back({"anneal " + std::to_string(value), [run] { run->anneal(); }});
  }
  const auto times = medians(contenders, rounds);
  std::printf("\n%-14s %12s %14s %16s %10s\n", quantity.c_str(), "ms", "us/evaluation",
              "products, us", "(M+1) F");
  nlohmann::json rows;
  for (size_t i = 0; i < values.size(); ++i) {
    const double time = times.at("anneal " + std::to_string(values[i]));
    const double floor = times.at("products " + std::to_string(values[i]));
    const double n = runs[i]->evaluations();
    std::printf("%-14ld %12.2f %14.3f %16.3f %10.3f\n", long(values[i]), 1e3 * time, 1e6 * time / n,
                1e6 * floor / n, time / floor);
    rows.push_back({{quantity, values[i]},
                    {"milliseconds", 1e3 * time},
                    {"us_per_evaluation", 1e6 * time / n},
                    {"floors", time / floor}});
  }
  return rows;
}

/// Time against `quantity`, a straight line by least squares of relative errors.
void fit(const std::string& quantity, const nlohmann::json& rows) {
  double w = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& row : rows) {
    const double a = row[quantity], b = row["milliseconds"], weight = 1 / (b * b);
    w += weight, x += weight * a, y += weight * b, xx += weight * a * a, xy += weight * a * b;
  }
  const double slope = (w * xy - x * y) / (w * xx - x * x), start = (y - slope * x) / w;
  double worst = 0;
  for (const auto& row : rows) {
    const double b = row["milliseconds"];
    worst = std::max(worst, std::abs(start + slope * double(row[quantity]) - b) / b);
  }
  std::printf("  %.3f ms + %.4f ms x %s; the farthest from that line by %.1f%%\n", start, slope,
              quantity.c_str(), 100 * worst);
}

}  // namespace
}  // namespace crais::bench

int main(int argc, char** argv) {
  using namespace crais;
  using namespace crais::bench;
  const int64_t rounds = argc > 1 ? std::atol(argv[1]) : 7;
  at::set_num_threads(1);
  if (std::getenv("CRAIS_DEFAULT_MALLOC") == nullptr) keep_freed_memory();
  const c10::NoGradGuard no_grad;
  std::printf("%s; evaluator %s\n", machine().c_str(), Run({}).evaluator().c_str());
  nlohmann::json report = {{"machine", machine()}};
  report["latent"] = table("latent", {2, 10, 50, 100, 200}, &Shape::latent, rounds);
  report["hidden"] = table("hidden", {200, 400, 512, 1024}, &Shape::hidden, rounds);
  report["images"] = table("images", {16, 32, 64, 128, 256}, &Shape::images, rounds);
  fit("images", report["images"]);
  report["chains"] = table("chains", {1, 4, 16, 64, 256}, &Shape::chains, rounds);
  fit("chains", report["chains"]);
  report["temperatures"] = table("temperatures", {8, 32, 128, 512}, &Shape::steps, rounds);
  fit("temperatures", report["temperatures"]);
  std::printf("\n%s\n", report.dump(2).c_str());
}
