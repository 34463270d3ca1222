// Everything that runs with --device cuda, on a device that is none: no tensor is left on the CPU,
// the host does not read the device's memory, and numbers are the CPU's.
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <string>

#include "bases/base.h"
#include "core/rng.h"
#include "core/target.h"
#include "data/images.h"
#include "device/mock_device.h"
#include "evaluation/estimator.h"
#include "evaluation/log_normalizer.h"
#include "models/trainer.h"
#include "models/vae.h"
#include "samplers/mover.h"
#include "samplers/plan.h"
#include "support/registered.h"
#include "support/temporary_folder.h"
#include "targets/decoder_posterior.h"
#include "targets/decoder_target.h"
#include "util/error.h"
#include "util/interrupt.h"

namespace crais {
namespace {

using testing::examples;
using testing::mock_device;
using testing::named_by_spec;

class Device : public ::testing::Test {
 protected:
  void SetUp() override { testing::make_mock_device(); }
};

TEST_F(Device, IsNotTheCpu) {
  const at::Tensor there = at::arange(6, at::kDouble).view({2, 3}).to(mock_device());
  EXPECT_FALSE(there.is_cpu());
  EXPECT_TRUE(
      at::equal((2 * there.t() + 1).cpu(), (2 * at::arange(6, at::kDouble).view({2, 3}).t() + 1)));
  EXPECT_DOUBLE_EQ(there.sum().item<double>(), 15);
  EXPECT_THROW(there + at::ones({2, 3}, at::kDouble), c10::Error);
  EXPECT_THROW(there.index_select(0, at::zeros({1}, at::kLong)), c10::Error);
  EXPECT_DOUBLE_EQ((there + at::ones({}, at::kDouble)).sum().item<double>(), 21);
}

TEST_F(Device, HasTheCpusRandomNumbers) {
  at::Generator there = make_generator(5, mock_device()), here = make_generator(5);
  EXPECT_TRUE(at::equal(at::empty({7}, mock_device()).normal_(0, 1, there).cpu(),
                        at::empty({7}).normal_(0, 1, here)));
  EXPECT_THROW(at::empty({7}, mock_device()).normal_(0, 1, here), c10::Error);
}

/// To the bit, or within a relative `tolerance`.
void expect_same(const at::Tensor& there, const at::Tensor& here, double tolerance = 0) {
  ASSERT_EQ(there.defined(), here.defined());
  if (!here.defined()) return;
  EXPECT_EQ(there.device(), mock_device());
  EXPECT_TRUE(at::allclose(there.cpu(), here, tolerance, tolerance))
      << (there.cpu() - here).abs().max();
}

// --- targets ------------------------------------------------------------------------------------

class DeviceTargets : public Device, public ::testing::WithParamInterface<std::string> {};

INSTANTIATE_TEST_SUITE_P(Every, DeviceTargets, ::testing::ValuesIn(examples<TargetRegistry>()),
                         named_by_spec);

TEST_P(DeviceTargets, AreThere) {
  const testing::TemporaryFolder folder;
  std::string spec = GetParam();
  if (const auto file = spec.find("FILE"); file != std::string::npos)
    spec.replace(file, 4, folder.file("cases.csv", "1,3.5,a\n2,0.5,b\n4,1.5,a\n3,-1,b\n"));
  const auto make = [&](at::Device device) {
    return TargetRegistry::instance().make("target", spec,
                                           {3, at::TensorOptions(at::kDouble).device(device), ""});
  };
  const auto here = make(at::kCPU), there = make(mock_device());
  at::Generator rng = make_generator(3);
  const at::Tensor z = at::empty({3, 5, here->dim()}, at::kDouble).normal_(0, 1, rng);
  const at::Tensor moved = z.to(mock_device());
  constexpr double kRounding = 1e-12;  // autograd may sum in another order there
  expect_same(there->log_density(moved), here->log_density(z), kRounding);
  expect_same(there->evaluate(moved).grad, here->evaluate(z).grad, kRounding);
  const at::Tensor point = z.select(1, 0).contiguous();
  if (here->dim() < 70)
    expect_same(there->curvature(point.to(mock_device())), here->curvature(point), kRounding);
  at::Generator one = make_generator(4, mock_device()), other = make_generator(4);
  const auto drawn = there->exact_sample(2, one), expected = here->exact_sample(2, other);
  ASSERT_EQ(drawn.has_value(), expected.has_value());
  if (drawn) expect_same(*drawn, *expected);
  if (const auto truth = there->true_log_normalizer()) {
    EXPECT_TRUE(at::equal(truth->cpu(), *here->true_log_normalizer()));
  }
  const auto part = there->select(at::tensor({2, 0}, at::kLong).to(mock_device()));
  expect_same(part->log_density(moved.slice(0, 0, 2)), here->log_density(z.slice(0, 0, 2)),
              kRounding);
}

// --- images of a small decoder, by every way to estimate ----------------------------------------

constexpr int64_t kImages = 2;
const VaeArchitecture kSmall{5, 7, /*latent=*/3, {16, 16}, Activation::kTanh, {}};

struct Posteriors {
  explicit Posteriors(at::Device device) {
    at::Generator rng = make_generator(2);
    const Vae here = make_vae(kSmall, 1).to(at::kCPU, at::kDouble);
    const Simulated drawn = simulate(here, kImages, rng);
    vae = here.to(device, at::kDouble);
    target = std::make_unique<DecoderPosterior>(vae, drawn.images.to(device),
                                                drawn.latents.to(device), nullptr);
  }
  Vae vae;
  std::unique_ptr<DecoderPosterior> target;
};

EstimateOptions options_of(const std::string& method) {
  return {.methods = {method},
          .base = "laplace",
          .chains = 8,
          .max_evaluations = 2000,
          .seed = 11,
          .steps = 6,
          .pilot_chains = 8,
          .pilot_problems = 2};
}

/// Estimates on both devices, including tuning, are equal up to rounding.
void expect_same_estimates(const EstimateOptions& options, double tolerance = 1e-12) {
  const testing::CountedNumbers counted;
  const auto run = [&](at::Device device) {
    const c10::NoGradGuard no_grad;
    const Posteriors images(device);
    const TunedEstimator estimator = Estimator(options).tune(*images.target, kImages);
    return estimator.estimate(0, *images.target);
  };
  const ChunkResult there = run(mock_device()), here = run(at::kCPU);
  ASSERT_EQ(there.runs.size(), here.runs.size());
  for (size_t i = 0; i < here.runs.size(); ++i)
    for (const auto& [name, column, is_rare] : ChunkRun::columns()) {
      const ChunkRun::Column &a = there.runs[i].*column, &b = here.runs[i].*column;
      const at::Tensor x = at::tensor(a, at::kDouble), y = at::tensor(b, at::kDouble);
      EXPECT_TRUE(at::allclose(x, y, /*rtol=*/tolerance, /*atol=*/tolerance, /*equal_nan=*/true))
          << name << ": " << (x - y).abs().max().item<double>();
    }
  for (size_t i = 0; i < here.runs.size(); ++i) {
    EXPECT_EQ(there.runs[i].flags, here.runs[i].flags);
    EXPECT_EQ(there.runs[i].cost, here.runs[i].cost);
  }
}

TEST_F(Device, EvaluatesADecoderGivenAsAFunction) {
  const testing::CountedNumbers counted;
  const auto run = [&](at::Device device) {
    const Posteriors images(device);
    at::Generator rng = make_generator(8);
    const at::Tensor x =
        at::empty({kImages, kSmall.num_pixels()}, at::kDouble).uniform_(0, 1, rng).to(device);
    const DecoderTarget target(
        {.decode = [&](const at::Tensor& z) { return images.vae.decoder.forward(z); },
         .latent_dim = kSmall.latent},
        x);
    return estimate_log_normalizer(
        target, {.base = "laplace", .chains = 8, .seed = 5, .steps = 6, .pilot_problems = 4});
  };
  const Result there = run(mock_device()), here = run(at::kCPU);
  EXPECT_TRUE(at::allclose(there.value, here.value, 1e-12, 1e-12));
  EXPECT_EQ(there.cost, here.cost);
}

using Way = std::pair<std::string, std::string>;  // an option, and one of its values

std::vector<Way> ways() {
  std::vector<Way> all;
  const auto add = [&](const std::string& option, const std::vector<std::string>& values) {
    for (const std::string& value : values) all.emplace_back(option, value);
  };
  add("method", examples<MethodRegistry>());
  add("base", examples<BaseRegistry>());
  add("kernel", examples<TransitionRegistry>());
  add("schedule", examples<ScheduleRegistry>());
  add("resampling", {"systematic:0.9", "multinomial:0.99,of=last"});
  return all;
}

class DeviceWays : public Device, public ::testing::WithParamInterface<Way> {};
INSTANTIATE_TEST_SUITE_P(Every, DeviceWays, ::testing::ValuesIn(ways()), [](const auto& instance) {
  return testing::name_of_test(instance.param.first + "_" + instance.param.second);
});
TEST_P(DeviceWays, GiveTheSameEstimates) {
  const auto& [option, value] = GetParam();
  EstimateOptions options = options_of(option == "method" ? value : "ais");
  if (option == "base") options.base = value;
  if (option == "kernel") options.kernel = value;
  if (option == "schedule") options.schedule = value;
  if (option == "resampling") options.resampling = value;
  expect_same_estimates(options);
  if (option != "schedule") return;
  options.plan_per_problem = true;
  expect_same_estimates(options);
}

TEST_F(Device, AnnealsAlongLearnedPaths) {
  EstimateOptions options = options_of("ais");
  options.path = "f:jensen-shannon";
  for (const bool shared : {true, false}) {
    options.plan_per_problem = !shared;
    expect_same_estimates(options, /*tolerance=*/1e-8);  // what is learned makes rounding larger
  }
}

TEST_F(Device, ChoosesBasesAndBudgets) {
  EstimateOptions options = options_of("ais");
  options.base = "auto";
  expect_same_estimates(options);
  options.base = "laplace";
  options.budget = 600;
  expect_same_estimates(options);
}

TEST_F(Device, Trains) {
  const Images all = synthetic_images(300, 1);
  const auto part = [&](int64_t begin, int64_t end) {
    Images chosen = all;
    chosen.pixels = all.pixels.slice(0, begin, end);
    return chosen;
  };
  VaeArchitecture small{.latent = 3, .hidden = {10}};
  TrainerOptions options{.batch = 64};
  Trainer trainer(make_vae(small, 1), options, part(0, 200), part(200, 300), mock_device());
  const double first = trainer.run_epoch().validation.bound;
  EXPECT_GT(trainer.run_epoch().validation.bound, first);
  EXPECT_TRUE(trainer.current().decoder.layers[0].weight.is_cpu());
}

// --- how often the host waits ------------------------------------------------------------------

int64_t waits_of(int64_t steps, const std::string& kernel) {
  const c10::NoGradGuard no_grad;
  const Posteriors images(mock_device());
  const Problem problem(borrow(*images.target), *images.target->amortised_base());
  const auto path = PathRegistry::instance().make("path", "geometric");
  const auto rule = ScheduleRegistry::instance().make("schedule", "linear", ScheduleOptions{steps});
  const auto transition = TransitionRegistry::instance().make("kernel", kernel, {});
  at::Generator rng = make_generator(1, mock_device());
  const int64_t before = testing::num_waits();
  anneal(problem, *path, freeze(*rule, 0.2), *transition, 8, rng);
  return testing::num_waits() - before;
}

TEST_F(Device, IsNotWaitedForWhileAnnealing) {
  for (const std::string& kernel : examples<TransitionRegistry>())
    EXPECT_EQ(waits_of(40, kernel), waits_of(5, kernel)) << kernel;
}

// --- moves that the device repeats by itself ----------------------------------------------------

class DeviceMovers : public Device, public ::testing::WithParamInterface<std::string> {};
INSTANTIATE_TEST_SUITE_P(Every, DeviceMovers, ::testing::ValuesIn(examples<TransitionRegistry>()),
                         named_by_spec);

/// With the decoder's gradient by hand, and with one by autograd; and of other particles, in other
/// memory, as resampling makes them.
TEST_P(DeviceMovers, ReplayTheSameNumbers) {
  const c10::NoGradGuard no_grad;
  const Posteriors images(mock_device());
  const auto u2 = TargetRegistry::instance().make(
      "target", "u2:width=4", {kImages, at::TensorOptions(at::kDouble).device(mock_device()), ""});
  const auto path = PathRegistry::instance().make("path", "power:0.5");
  const auto kernel = TransitionRegistry::instance().make("kernel", GetParam(), {2});
  const auto run = [&](const Target& target, bool recorded) {
    const Problem problem(borrow(target),
                          AffineMap::identity(kImages, target.dim(), target.options()));
    at::Generator rng = make_generator(7, mock_device());
    Particles particles = problem.start(10, rng);
    Mover move(problem, *path, *kernel, rng, recorded ? testing::make_mock_recorder(rng) : nullptr);
    std::vector<at::Tensor> seen;
    for (int i = 0; i < 6; ++i) {
      const at::Tensor beta = at::full({kImages}, 0.15 * (i + 1), at::kDouble).to(mock_device());
      if (i == 4)
        for (at::Tensor* x : {&particles.e, &particles.log_q0, &particles.log_gamma,
                              &particles.grad_log_gamma, &particles.momentum})
          if (x->defined()) *x = x->flip(1);
      const Moved moved = move(particles, beta, 0.5 - 0.05 * beta);
      particles = moved.particles;
      seen.insert(seen.end(), {particles.e.cpu(), particles.log_gamma.cpu(),
                               particles.grad_log_gamma.cpu(), moved.accept_prob.cpu()});
    }
    set_interrupted(true);  // by a signal, which a replay heeds too
    const at::Tensor beta = at::ones({kImages}, at::kDouble).to(mock_device());
    EXPECT_THROW(move(particles, beta, 0.5 * beta), Error);
    set_interrupted(false);
    return seen;
  };
  for (const Target* target : std::vector<const Target*>{images.target.get(), u2.get()}) {
    const auto plain = run(*target, false), replayed = run(*target, true);
    for (size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(at::equal(plain[i], replayed[i])) << i;
  }
}

}  // namespace
}  // namespace crais
