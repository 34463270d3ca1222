#include "models/trainer.h"

#include <torch/optim/adam.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/rng.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "models/file_fields.h"
#include "util/error.h"

namespace crais {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kAlignment = 16;  // floats: a cache line
constexpr int64_t kValidationBatch = 500;
constexpr auto kReportEvery = std::chrono::milliseconds(200);

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int64_t padded(int64_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

int64_t flat_size(const Vae& vae) {
  int64_t size = 0;
  for (const auto& [name, tensor] : vae.named_tensors()) size += padded(tensor.numel());
  return size;
}

/// Calls `use(parameter, its offset in the flat vector)` for every parameter.
template <typename Use>
void for_each_parameter(Vae& vae, const at::Tensor& flat, const Use& use) {
  int64_t offset = 0;
  for (Network* mlp : {&vae.encoder, &vae.decoder})
    for (Layer& layer : mlp->layers)
      for (at::Tensor* parameter : {&layer.weight, &layer.bias}) {
        use(*parameter, flat.narrow(0, offset, parameter->numel()).view(parameter->sizes()));
        offset += padded(parameter->numel());
      }
}

/// Sums over images, kept on the device: a step need not wait for it.
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

// The file of a training state.

using nlohmann::json;

constexpr const char* kTrainingKey = "crais_training";
constexpr int64_t kTrainingFormatVersion = 1;
constexpr size_t kMaxShown = 80;

/// A setting from a file, fit for one line of a message.
std::string shown(const json& value) {
  const std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  return text.size() > kMaxShown ? text.substr(0, kMaxShown) + "..." : text;
}

void check_settings(const json& saved, const json& settings, const std::string& file) {
  for (const auto& [name, now] : settings.items()) {
    const json before = saved.value(name, json());
    if (before != now)
      throw argument_error(file, ": was trained with ", name, " ", shown(before),
                           ", this run asks for ", shown(now),
                           "; resume with the same settings, or start afresh with `overwrite`");
  }
  for (const auto& [name, before] : saved.items())
    if (!settings.contains(name))
      throw argument_error(file, ": was trained with the setting ", quoted(name), " ",
                           shown(before), ", which this run does not have");
}

}  // namespace

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(EpochMetrics::Means, bound, elbo, kl)

void to_json(nlohmann::json& object, const EpochMetrics& metrics) {
  object = {{"epoch", metrics.epoch},           {"learning_rate", metrics.learning_rate},
            {"kl_weight", metrics.kl_weight},   {"train", metrics.train},
            {"validation", metrics.validation}, {"seconds", metrics.seconds}};
}

void from_json(const nlohmann::json& object, EpochMetrics& metrics) {
  metrics = {json_field<int64_t>(object, "epoch", "metrics"),
             object.at("learning_rate"),
             object.at("kl_weight"),
             object.at("train"),
             object.at("validation"),
             object.at("seconds")};
}

/// The images in the form that the steps need.
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
      vae_(vae.to(device, at::kFloat)),
      flat_(at::zeros({flat_size(vae)}, at::TensorOptions(at::kFloat).device(device))),
      data_(std::make_unique<Data>(options, train, validation, device)) {
  const at::Tensor gradient = at::zeros_like(flat_);
  for_each_parameter(vae_, flat_, [](at::Tensor& parameter, const at::Tensor& place) {
    place.copy_(parameter);
    parameter = place.detach().requires_grad_(true);
  });
  for_each_parameter(vae_, gradient, [](at::Tensor& parameter, const at::Tensor& place) {
    parameter.mutable_grad() = place;
  });
  flat_.mutable_grad() = gradient;
  best_ = flat_.clone();
  optimizer_ = std::make_unique<torch::optim::Adam>(
      std::vector<at::Tensor>{flat_},
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
    flat_.mutable_grad().zero_();
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
  // Equal noise in every epoch makes epochs comparable.
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
    throw argument_error("training diverged in epoch ", metrics.epoch,
                         ": the objective is not finite; try a smaller learning rate");
  metrics.seconds = seconds_since(start);
  const EpochMetrics* best = best_metrics();
  if (!best || metrics.validation.bound > best->validation.bound) best_.copy_(flat_);
  return metrics_.emplace_back(metrics);
}

const EpochMetrics* Trainer::best_metrics() const {
  const EpochMetrics* best = nullptr;
  for (const EpochMetrics& metrics : metrics_)
    if (!best || metrics.validation.bound > best->validation.bound) best = &metrics;
  return best;
}

bool Trainer::finished() const {
  if (epoch() >= options_.epochs) return true;
  if (options_.patience == 0 || metrics_.empty()) return false;
  // Patience begins once the objective no longer changes.
  const int64_t since = std::max(best_metrics()->epoch, options_.kl_warmup);
  return epoch() - since >= options_.patience;
}

Vae Trainer::unpacked(const at::Tensor& flat) const {
  Vae vae = vae_;
  for_each_parameter(vae, flat.detach(), [](at::Tensor& parameter, const at::Tensor& place) {
    parameter = place.to(at::kCPU, at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  });
  return vae;
}

Vae Trainer::current() const { return unpacked(flat_); }
Vae Trainer::best() const { return unpacked(best_); }

TrainerState Trainer::state() const {
  const auto copy = [](const at::Tensor& tensor) { return tensor.detach().cpu().clone(); };
  TrainerState state{.weights = copy(flat_),
                     .best_weights = copy(best_),
                     .exp_avg = at::zeros_like(copy(flat_)),
                     .exp_avg_sq = at::zeros_like(copy(flat_)),
                     .steps = 0,
                     .metrics = metrics_};
  if (!optimizer_->state().empty()) {
    const auto& adam =
        static_cast<const torch::optim::AdamParamState&>(*optimizer_->state().begin()->second);
    state.exp_avg = copy(adam.exp_avg());
    state.exp_avg_sq = copy(adam.exp_avg_sq());
    state.steps = adam.step();
  }
  return state;
}

void Trainer::check(const TrainerState& state) const {
  const auto require = [](bool holds, const auto&... fault) {
    if (!holds) throw data_error("the training state ", fault...);
  };
  for (const at::Tensor* tensor :
       {&state.weights, &state.best_weights, &state.exp_avg, &state.exp_avg_sq}) {
    require(tensor->scalar_type() == at::kFloat && tensor->sizes() == flat_.sizes(),
            "is not of this architecture");
    require(tensor->isfinite().all().item<bool>(), "holds NaN or infinite values");
  }
  require(!(state.exp_avg_sq < 0).any().item<bool>(), "holds squares below 0");
  const int64_t steps_per_epoch = (data_->train.size(0) + options_.batch - 1) / options_.batch;
  const auto epochs = static_cast<int64_t>(state.metrics.size());
  require(state.steps == epochs * steps_per_epoch, "has ", state.steps, " steps in ", epochs,
          " epochs of ", steps_per_epoch);
  for (int64_t e = 1; e <= epochs; ++e) {
    const EpochMetrics& m = state.metrics[static_cast<size_t>(e - 1)];
    require(m.epoch == e, "has the metrics of epoch ", m.epoch, " as those of epoch ", e);
    for (const double value : {m.learning_rate, m.kl_weight, m.train.bound, m.validation.bound,
                               m.validation.elbo, m.seconds})
      require(std::isfinite(value), "has no finite metrics of epoch ", e);
  }
}

void Trainer::restore(const TrainerState& state) {
  check(state);
  // A step with a gradient of zero makes Adam allocate its moments, under the key of this LibTorch.
  // The weights are overwritten afterwards.
  flat_.mutable_grad().zero_();
  optimizer_->step();
  auto& adam = static_cast<torch::optim::AdamParamState&>(*optimizer_->state().begin()->second);
  const c10::NoGradGuard no_grad;
  adam.exp_avg().copy_(state.exp_avg);
  adam.exp_avg_sq().copy_(state.exp_avg_sq);
  adam.step(state.steps);
  flat_.copy_(state.weights);
  best_.copy_(state.best_weights);
  metrics_ = state.metrics;
}

json training_settings(const TrainerOptions& options, const VaeArchitecture& architecture,
                       const std::string& data, const std::string& data_md5) {
  json settings = {{"objective", to_string(options.objective)},
                   {"lr", options.learning_rate},
                   {"betas", {options.beta1, options.beta2}},
                   {"decay", to_string(options.decay)},
                   {"batch", options.batch},
                   {"kl-warmup", options.kl_warmup},
                   {"seed", options.seed},
                   {"binarisation", to_string(options.binarisation)},
                   {"latent", architecture.latent},
                   {"hidden", architecture.hidden},
                   {"act", to_string(architecture.activation)},
                   {"likelihood", to_string(architecture.likelihood)},
                   {"image size", {architecture.image_rows, architecture.image_cols}},
                   {"data", data},
                   {"data md5", data_md5}};
  // Without a decay, a longer run begins like a shorter run.
  if (options.decay.final_rate) settings["epochs"] = options.epochs;
  return settings;
}

void write_training_state(const std::filesystem::path& path, const TrainerState& state,
                          const json& settings) {
  const json metadata = {{"format_version", kTrainingFormatVersion},
                         {"settings", settings},
                         {"steps", state.steps},
                         {"metrics", state.metrics}};
  write_safetensors(path, {{{"weights", state.weights},
                            {"best_weights", state.best_weights},
                            {"exp_avg", state.exp_avg},
                            {"exp_avg_sq", state.exp_avg_sq}},
                           {{kTrainingKey, metadata.dump()}}});
}

TrainerState read_training_state(const std::filesystem::path& path, const json& settings) {
  const std::string file = path.string();
  const SafeTensors content = read_safetensors(path);
  const auto entry = content.metadata.find(kTrainingKey);
  if (entry == content.metadata.end())
    throw data_error(file, ": not a training state (no \"", kTrainingKey, "\" in its metadata)");
  TrainerState state;
  try {
    const json metadata = parse_json(entry->second, file + ": metadata");
    if (metadata.at("format_version") != kTrainingFormatVersion)
      throw data_error(file, ": training state format version ",
                       shown(metadata.at("format_version")), ", this program reads version ",
                       kTrainingFormatVersion);
    check_settings(metadata.at("settings"), settings, file);
    state.steps = json_field<int64_t>(metadata, "steps", file + ": metadata");
    if (state.steps < 0) throw data_error(file, ": metadata: \"steps\" is negative");
    state.metrics = metadata.at("metrics");
  } catch (const json::exception& error) {
    throw data_error(file, ": metadata: ", quoted(error.what()));
  }
  state.weights = tensor_of(content, "weights", {-1}, file);
  state.best_weights = tensor_of(content, "best_weights", {-1}, file);
  state.exp_avg = tensor_of(content, "exp_avg", {-1}, file);
  state.exp_avg_sq = tensor_of(content, "exp_avg_sq", {-1}, file);
  return state;
}

}  // namespace crais
