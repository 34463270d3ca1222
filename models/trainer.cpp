#include "models/trainer.h"

#include <torch/optim/adam.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/rng.h"
#include "util/error.h"

namespace crais {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kValidationBatch = 500;
constexpr auto kReportEvery = std::chrono::milliseconds(200);

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// With memory of its own.
Vae copied(Vae vae, at::Device device) {
  for (Network* network : {&vae.encoder, &vae.decoder})
    for (Layer& layer : network->layers)
      for (at::Tensor* parameter : {&layer.weight, &layer.bias})
        *parameter =
            parameter->detach().to(device, at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  return vae;
}

/// Sums over images, kept on the device so that no step waits for it.
class Totals {
 public:
  explicit Totals(at::Device device)
      : sums_(at::zeros({3}, at::TensorOptions(at::kDouble).device(device))) {}

  void add(const Bounds& bounds) {
    const c10::NoGradGuard no_grad;
    sums_ += at::stack({bounds.bound, bounds.elbo, bounds.kl}).sum(1, false, at::kDouble);
    images_ += bounds.elbo.size(0);
  }
  EpochMetrics::Means means() const {
    const at::Tensor means = sums_.cpu() / static_cast<double>(images_);
    return {means[0].item<double>(), means[1].item<double>(), means[2].item<double>()};
  }
  int64_t images() const { return images_; }

 private:
  at::Tensor sums_;
  int64_t images_ = 0;
};

nlohmann::json to_json_means(const EpochMetrics::Means& means) {
  return {{"bound", means.bound}, {"elbo", means.elbo}, {"kl", means.kl}};
}

}  // namespace

void to_json(nlohmann::json& object, const EpochMetrics& metrics) {
  object = {{"epoch", metrics.epoch},
            {"learning_rate", metrics.learning_rate},
            {"kl_weight", metrics.kl_weight},
            {"train", to_json_means(metrics.train)},
            {"validation", to_json_means(metrics.validation)},
            {"seconds", metrics.seconds}};
}

/// The images as the steps want them.
struct Trainer::Data {
  at::Tensor train;       // [N, pixels]: uint8 if drawn anew each epoch, float32 if binarised
  at::Tensor validation;  // [N, pixels] float32, binarised once
  bool dynamic = false;

  Data(const TrainerOptions& options, const Images& train_images, const Images& validation_images,
       at::Device device)
      : dynamic(options.binarisation.kind == Binarisation::Kind::kDynamic) {
    train = dynamic ? train_images.pixels.to(device) : binarised(options, train_images, device);
    validation = binarised(options, validation_images, device);
  }

  at::Tensor batch(const at::Tensor& rows, at::Generator& generator) const {
    const at::Tensor chosen = train.index_select(0, rows);
    return dynamic ? binarise({}, chosen, 0, generator) : chosen;
  }

 private:
  static at::Tensor binarised(const TrainerOptions& options, const Images& images,
                              at::Device device) {
    // Index 1: index 0 of this purpose is the validation's noise.
    at::Generator generator = make_generator(derive_seed(options.seed, Purpose::kValidate, 1));
    return binarise(options.binarisation, images.pixels.cpu(), images.first_index, generator)
        .to(device);
  }
};

Trainer::Trainer(const Vae& vae, const TrainerOptions& options, const Images& train,
                 const Images& validation, at::Device device)
    : options_(options),
      device_(device),
      vae_(copied(vae, device)),
      best_(copied(vae, at::kCPU)),
      data_(std::make_unique<Data>(options, train, validation, device)) {
  std::vector<at::Tensor> parameters;
  for (const auto& [name, tensor] : vae_.named_tensors())
    parameters.push_back(tensor.requires_grad_(true));
  optimizer_ = std::make_unique<torch::optim::Adam>(
      parameters,
      torch::optim::AdamOptions(options.learning_rate).betas({options.beta1, options.beta2}));
}

Trainer::~Trainer() = default;

EpochMetrics::Means Trainer::train(double kl_weight,
                                   const std::function<void(const TrainProgress&)>& report) {
  const auto stream = [&](Purpose purpose, at::Device device) {
    return make_generator(derive_seed(options_.seed, purpose, static_cast<uint64_t>(epoch())),
                          device);
  };
  at::Generator shuffle = stream(Purpose::kShuffle, at::kCPU);
  at::Generator binary = stream(Purpose::kBinarise, device_);
  at::Generator noise = stream(Purpose::kTrain, device_);
  const int64_t images = data_->train.size(0);
  const at::Tensor order = at::randperm(images, shuffle, at::kLong).to(device_);

  Totals totals(device_);
  auto last_report = Clock::now();
  for (int64_t begin = 0; begin < images; begin += options_.batch) {
    const at::Tensor rows = order.slice(0, begin, std::min(images, begin + options_.batch));
    const at::Tensor x = data_->batch(rows, binary);
    const at::Tensor samples =
        at::randn({options_.objective.samples, x.size(0), vae_.architecture.latent}, noise,
                  x.options().dtype(at::kFloat));
    const Bounds bounds = evaluate(options_.objective, vae_, x, samples, kl_weight);
    optimizer_->zero_grad();
    bounds.maximised.mean().neg().backward();
    optimizer_->step();
    totals.add(bounds);
    if (report && Clock::now() - last_report >= kReportEvery) {
      report({totals.images(), images, totals.means().bound});
      last_report = Clock::now();
    }
  }
  return totals.means();
}

EpochMetrics::Means Trainer::validate() const {
  const c10::NoGradGuard no_grad;
  // The same noise every epoch, so that epochs compare.
  at::Generator noise = make_generator(derive_seed(options_.seed, Purpose::kValidate), device_);
  Totals totals(device_);
  for (const at::Tensor& x : data_->validation.split(kValidationBatch)) {
    const at::Tensor samples =
        at::randn({options_.objective.samples, x.size(0), vae_.architecture.latent}, noise,
                  x.options().dtype(at::kFloat));
    totals.add(evaluate(options_.objective, vae_, x, samples));
  }
  return totals.means();
}

const EpochMetrics& Trainer::run_epoch(const std::function<void(const TrainProgress&)>& report) {
  const auto start = Clock::now();
  EpochMetrics metrics;
  metrics.epoch = epoch() + 1;
  metrics.learning_rate = options_.decay.rate(options_.learning_rate, epoch(), options_.epochs);
  metrics.kl_weight =
      std::min(1.0, static_cast<double>(epoch() + 1) /
                        static_cast<double>(std::max<int64_t>(options_.kl_warmup, 1)));
  static_cast<torch::optim::AdamOptions&>(optimizer_->param_groups()[0].options())
      .lr(metrics.learning_rate);
  metrics.train = train(metrics.kl_weight, report);
  metrics.validation = validate();
  if (!std::isfinite(metrics.train.bound) || !std::isfinite(metrics.validation.bound))
    throw argument_error("training diverged in epoch " + std::to_string(metrics.epoch) +
                         ": the objective is not finite; try a smaller learning rate");
  metrics.seconds = seconds_since(start);
  const EpochMetrics* best = best_metrics();
  if (!best || metrics.validation.bound > best->validation.bound) best_ = current();
  return metrics_.emplace_back(metrics);
}

const EpochMetrics* Trainer::best_metrics() const {
  const EpochMetrics* best = nullptr;
  for (const EpochMetrics& metrics : metrics_)
    if (!best || metrics.validation.bound > best->validation.bound) best = &metrics;
  return best;
}

Vae Trainer::current() const { return copied(vae_, at::kCPU); }

}  // namespace crais
