#include "models/trainer.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/rng.h"
#include "io/safetensors.h"
#include "models/checkpoint.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "util/error.h"

namespace crais {
namespace {

using nlohmann::json;
using testing::TemporaryFolder;

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
  json settings() const { return training_settings(options, architecture, "synthetic", "md5"); }
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

TEST(Trainer, PatienceEndsTrainingAfterTheWarmUp) {
  TestRun run;
  run.options.learning_rate = 1e-30;  // the first epoch stays the best
  run.options.patience = 2;
  run.options.kl_warmup = 3;
  Trainer trainer = run.trainer();
  while (!trainer.finished()) trainer.run_epoch();
  EXPECT_EQ(trainer.epoch(), 5);
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

class Resume : public ::testing::TestWithParam<const char*> {};

TEST_P(Resume, EndsWithTheSameBits) {
  const TemporaryFolder scratch;
  TestRun run;
  run.options.binarisation = parse_binarisation(GetParam());
  Trainer straight = run.trainer();
  run_epochs(straight, 4);

  for (const int64_t done : {0, 2}) {
    Trainer first = run.trainer(), second = run.trainer();
    run_epochs(first, done);
    write_training_state(scratch.path() / "state", first.state(), run.settings());
    second.restore(read_training_state(scratch.path() / "state", run.settings()));
    EXPECT_EQ(second.epoch(), done);
    EXPECT_TRUE(same_weights(second.best(), first.best()));
    run_epochs(second, 4 - done);
    EXPECT_TRUE(same_weights(second.current(), straight.current()));
    EXPECT_TRUE(same_weights(second.best(), straight.best()));
    EXPECT_EQ(second.metrics()[3].train.bound, straight.metrics()[3].train.bound);
    EXPECT_EQ(second.metrics()[3].validation.bound, straight.metrics()[3].validation.bound);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Resume, ::testing::Values("dynamic", "static:7", "none"), [](const auto& instance) {
      return std::string(instance.param).substr(0, std::string(instance.param).find(':'));
    });

TEST(TrainingState, RejectsEveryOtherSetting) {
  const TemporaryFolder scratch;
  const TestRun run;
  const auto path = scratch.path() / "state";
  write_training_state(path, run.trainer().state(), run.settings());
  read_training_state(path, run.settings());
  const auto expect_named = [&](const char* name, const std::function<void(TestRun&)>& change) {
    TestRun other;
    change(other);
    expect_error(ErrorKind::kArgument, {path.string(), name, "`overwrite`"},
                 [&] { read_training_state(path, other.settings()); });
  };
  expect_named("objective", [](TestRun& r) { r.options.objective = parse_objective("iwae:2"); });
  expect_named("lr 0.003, this run asks for 0.01",
               [](TestRun& r) { r.options.learning_rate = 0.01; });
  expect_named("betas", [](TestRun& r) { r.options.beta2 = 0.99; });
  expect_named("decay", [](TestRun& r) { r.options.decay = parse_decay("cosine"); });
  expect_named("batch", [](TestRun& r) { r.options.batch = 65; });
  expect_named("kl-warmup", [](TestRun& r) { r.options.kl_warmup = 2; });
  expect_named("seed", [](TestRun& r) { r.options.seed = 4; });
  expect_named("binarisation",
               [](TestRun& r) { r.options.binarisation = parse_binarisation("none"); });
  expect_named("latent", [](TestRun& r) { r.architecture.latent = 6; });
  expect_named("hidden", [](TestRun& r) { r.architecture.hidden = {20, 20}; });
  expect_named("act", [](TestRun& r) { r.architecture.activation = Activation::kElu; });
  expect_named("likelihood",
               [](TestRun& r) { r.architecture.likelihood = parse_likelihood("gaussian:1"); });
  // Neither changes the epochs that were run, unless the decay depends on their number.
  TestRun longer;
  longer.options.epochs = 200;
  longer.options.patience = 9;
  read_training_state(path, longer.settings());
  TestRun decaying;
  decaying.options.decay = parse_decay("cosine:1e-5");
  write_training_state(path, decaying.trainer().state(), decaying.settings());
  decaying.options.epochs = 200;
  expect_error(ErrorKind::kArgument, {"epochs 100", "200"},
               [&] { read_training_state(path, decaying.settings()); });
}

TEST(TrainingState, RejectsDamage) {
  const TemporaryFolder scratch;
  const TestRun run;
  const auto path = scratch.path() / "state";
  expect_error(ErrorKind::kNoInput, {path.string()},
               [&] { read_training_state(path, run.settings()); });
  write_training_state(path, run.trainer().state(), run.settings());
  SafeTensors content = read_safetensors(path);
  const SafeTensors intact = content;
  const auto expect_damaged = [&](std::initializer_list<std::string> words) {
    write_safetensors(path, content);
    expect_error(ErrorKind::kData, words, [&] {
      Trainer trainer = run.trainer();
      trainer.restore(read_training_state(path, run.settings()));
    });
    content = intact;
  };
  std::erase_if(content.tensors, [](const auto& named) { return named.first == "exp_avg"; });
  expect_damaged({"exp_avg"});
  content.tensors[0].second = at::zeros({3});
  expect_damaged({"architecture"});
  content.metadata.clear();
  expect_damaged({"not a training state"});
  content.metadata["crais_training"] = "{}";
  expect_damaged({"format_version"});
  json metadata = json::parse(intact.metadata.at("crais_training"));
  metadata["format_version"] = 9;
  content.metadata["crais_training"] = metadata.dump();
  expect_damaged({"version 9"});
  metadata["format_version"] = 1;
  metadata["metrics"] = "none";
  content.metadata["crais_training"] = metadata.dump();
  expect_damaged({path.string(), "metadata"});
  metadata["metrics"] = json::array();
  metadata["steps"] = -1;
  content.metadata["crais_training"] = metadata.dump();
  expect_damaged({path.string(), "steps"});
}

TEST(TrainingState, RejectsWhatNoTrainingHasComeThrough) {
  TestRun run;
  Trainer trainer = run.trainer();
  run_epochs(trainer, 2);
  const auto refuse = [&](const std::string& word,
                          const std::function<void(TrainerState&)>& spoil) {
    TrainerState state = trainer.state();
    spoil(state);
    Trainer fresh = run.trainer();
    expect_error(ErrorKind::kData, {"training state", word}, [&] { fresh.restore(state); });
    EXPECT_EQ(fresh.epoch(), 0);
  };
  refuse("NaN", [](auto& s) { s.weights.fill_(NAN); });
  refuse("NaN", [](auto& s) { s.exp_avg[0] = INFINITY; });
  refuse("below 0", [](auto& s) { s.exp_avg_sq[0] = -1; });
  refuse("steps", [](auto& s) { s.steps += 1; });
  refuse("steps", [](auto& s) { s.metrics.insert(s.metrics.end(), 4, s.metrics[0]); });
  refuse("epoch -7", [](auto& s) { s.metrics[1].epoch = -7; });
  refuse("finite metrics of epoch 1", [](auto& s) { s.metrics[0].validation.bound = NAN; });
}

}  // namespace
}  // namespace crais
