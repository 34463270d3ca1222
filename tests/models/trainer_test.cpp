#include "models/trainer.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/rng.h"
#include "support/scratch.h"
#include "util/error.h"

namespace crais {
namespace {

constexpr int64_t kTrain = 500;

Images part(const Images& images, int64_t begin, int64_t end) {
  Images chosen = images;
  chosen.pixels = images.pixels.slice(0, begin, end);
  chosen.first_index = begin;
  return chosen;
}

struct TestRun {
  VaeArchitecture architecture;
  TrainerOptions options;
  Images train = part(synthetic_images(600, 1), 0, kTrain);
  Images validation = part(synthetic_images(600, 1), kTrain, 600);

  TestRun() {
    at::set_num_threads(1);  // the promise of equal bits is made for one thread
    architecture.latent = 5;
    architecture.hidden = {20};
    options.batch = 64;  // the last batch is smaller
    options.seed = 3;
    options.learning_rate = 3e-3;
  }
  Trainer trainer() const {
    return {make_vae(architecture, options.seed), options, train, validation};
  }
};

void run_epochs(Trainer& trainer, int64_t count) {
  for (int64_t i = 0; i < count; ++i) trainer.run_epoch();
}

bool same_weights(const Vae& a, const Vae& b) {
  const auto left = a.named_tensors(), right = b.named_tensors();
  for (size_t i = 0; i < left.size(); ++i)
    if (!at::equal(left[i].second, right[i].second)) return false;
  return left.size() == right.size();
}

class Objectives : public ::testing::TestWithParam<const char*> {};

TEST_P(Objectives, ImproveOnStrokeDigits) {
  TestRun run;
  run.options.objective = parse_objective(GetParam());
  Trainer trainer = run.trainer();
  run_epochs(trainer, 6);
  const auto& metrics = trainer.metrics();
  // Untrained, every pixel costs about log 2: 543 nats.
  EXPECT_LT(metrics.front().train.bound, -300);
  EXPECT_GT(metrics.back().train.bound, metrics.front().train.bound + 100);
  EXPECT_GT(metrics.back().validation.bound, metrics.front().validation.bound + 30);
  for (const auto& epoch : metrics) {
    EXPECT_GE(epoch.validation.kl, 0.0);
    EXPECT_GE(epoch.validation.bound, epoch.validation.elbo - 1.0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Objectives, ::testing::Values("elbo", "iwae:3"));

TEST(Trainer, AStepIsAdamOnTheMeanBound) {
  TestRun run;
  run.options.batch = kTrain;  // one step an epoch
  run.options.binarisation = parse_binarisation("threshold:127");
  // The order of a full batch matters to its noise alone; without noise in z, not at all.
  Vae vae = make_vae(run.architecture, 3);
  auto& head = vae.encoder.layers.back();
  head.weight.slice(0, 5).zero_();
  head.bias.slice(0, 5).fill_(-60);  // standard deviation 1e-13
  Trainer trainer(vae, run.options, run.train, run.validation);
  trainer.run_epoch();

  Vae reference = vae.to(at::kCPU, at::kDouble);
  for (Network* mlp : {&reference.encoder, &reference.decoder})
    for (Layer& layer : mlp->layers) {
      layer.weight.requires_grad_(true);
      layer.bias.requires_grad_(true);
    }
  const at::Tensor x = run.train.pixels.gt(127).to(at::kDouble);
  evaluate({}, reference, x, at::zeros({1, kTrain, 5}, at::kDouble)).elbo.mean().neg().backward();
  const auto before = reference.named_tensors(), after = trainer.current().named_tensors();
  for (size_t i = 0; i < before.size(); ++i) {
    // Adam's first step is the sign of the gradient, softened by its epsilon.
    const at::Tensor gradient = before[i].second.grad();
    const at::Tensor step = -3e-3 * gradient / (gradient.abs() + 1e-8);
    const at::Tensor clear = (gradient.abs() > 1e-4).to(at::kDouble);
    const at::Tensor moved = after[i].second.to(at::kDouble) - before[i].second.detach();
    EXPECT_LT(((moved - step) * clear).abs().max().item<double>(), 1e-5) << before[i].first;
    EXPECT_GT(clear.sum().item<double>(), 0.0) << before[i].first;
  }
}

TEST(Trainer, ValidationNoiseIsTheSameEveryEpoch) {
  TestRun run;
  run.options.learning_rate = 1e-30;  // nothing moves in float32
  Trainer trainer = run.trainer();
  run_epochs(trainer, 2);
  EXPECT_EQ(trainer.metrics()[0].validation.bound, trainer.metrics()[1].validation.bound);
  EXPECT_NE(trainer.metrics()[0].train.bound, trainer.metrics()[1].train.bound);
}

TEST(Trainer, EverySeedGoesItsOwnWayAndRepeats) {
  TestRun run;
  Trainer one = run.trainer(), again = run.trainer();
  run.options.seed = 4;
  Trainer other = run.trainer();
  for (Trainer* trainer : {&one, &again, &other}) run_epochs(*trainer, 1);
  EXPECT_TRUE(same_weights(one.current(), again.current()));
  EXPECT_FALSE(same_weights(one.current(), other.current()));
}

TEST(Trainer, KeepsTheBestWeights) {
  TestRun run;
  run.options.learning_rate = 0.01;
  Trainer trainer = run.trainer();
  std::vector<Vae> epochs;
  for (int i = 0; i < 12; ++i) {
    trainer.run_epoch();
    epochs.push_back(trainer.current());
  }
  size_t best = 0;
  for (size_t i = 1; i < epochs.size(); ++i)
    if (trainer.metrics()[i].validation.bound > trainer.metrics()[best].validation.bound) best = i;
  EXPECT_EQ(trainer.best_metrics()->epoch, static_cast<int64_t>(best) + 1);
  EXPECT_TRUE(same_weights(trainer.best(), epochs[best]));
}

TEST(Trainer, TheKlTermComesInByAWarmUp) {
  TestRun run;
  run.options.epochs = 3;
  run.options.kl_warmup = 3;
  Trainer trainer = run.trainer();
  while (!trainer.finished()) trainer.run_epoch();
  EXPECT_EQ(trainer.epoch(), 3);
  EXPECT_NEAR(trainer.metrics()[0].kl_weight, 1.0 / 3, 1e-12);
  EXPECT_EQ(trainer.metrics()[2].kl_weight, 1.0);
}

TEST(Trainer, LowersTheLearningRate) {
  TestRun run;
  run.options.epochs = 3;
  run.options.decay = parse_decay("cosine:1e-5");
  Trainer trainer = run.trainer();
  while (!trainer.finished()) trainer.run_epoch();
  EXPECT_EQ(trainer.epoch(), 3);
  EXPECT_NEAR(trainer.metrics()[2].learning_rate, 1e-5, 1e-12);
}

TEST(Trainer, ADivergingRunIsAnErrorThatSaysWhy) {
  TestRun run;
  run.options.learning_rate = 1e30;
  Trainer trainer = run.trainer();
  expect_error(ErrorKind::kArgument, {"diverged", "epoch", "learning rate"},
               [&] { run_epochs(trainer, 3); });
}

TEST(Trainer, ReportsItsProgress) {
  TestRun run;
  run.options.objective = parse_objective("iwae:100");  // long enough for a report
  Trainer trainer = run.trainer();
  int reports = 0;
  trainer.run_epoch([&](const TrainProgress& progress) {
    ++reports;
    EXPECT_EQ(progress.images, kTrain);
    EXPECT_GT(progress.images_done, 0);
    EXPECT_LE(progress.images_done, kTrain);
    EXPECT_LT(progress.bound, 0.0);
  });
  EXPECT_GT(reports, 0);
}

}  // namespace
}  // namespace crais
