#include "apps/study.h"

#include <algorithm>
#include <utility>

#include "apps/estimator.h"
#include "apps/eval_settings.h"
#include "core/files.h"
#include "core/rng.h"
#include "report/json.h"
#include "targets/vae_posterior.h"

namespace crais {
namespace {

using nlohmann::json;

constexpr int64_t kChunk = 64;  // images

EvalSettings settings_of(const std::string& flags, uint64_t seed) {
  std::vector<std::string> arguments = {"-"};  // in the checkpoint's place
  for (const auto& word : split(flags, ' '))
    if (!word.empty()) arguments.push_back(word);
  arguments.insert(arguments.end(), {"--seed", std::to_string(seed)});
  return read_settings(CommandLine(eval_loglik_synopsis(), arguments));
}

std::string bytes_of(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.cpu().contiguous();
  return {static_cast<const char*>(plain.data_ptr()), plain.nbytes()};
}

at::Tensor matrix_of(const std::vector<json>& cells, const std::string& column) {
  std::vector<at::Tensor> rows;
  for (const auto& cell : cells) {
    std::vector<double> row;
    for (const auto& value : cell.at(column))
      row.push_back(value.is_null() ? NAN : value.get<double>());
    rows.push_back(at::tensor(row, at::kDouble));
  }
  return at::stack(rows);
}

double mean_of(const std::vector<json>& cells, const std::string& key) {
  double sum = 0;
  for (const auto& cell : cells) sum += cell.at(key).get<double>();
  return sum / static_cast<double>(cells.size());
}

}  // namespace

Study::Study(const ExperimentOptions& options, int64_t count, bool simulated) : options_(options) {
  const Checkpoint checkpoint = read_checkpoint(options.checkpoint);
  ImageSettings settings;
  settings.data_dir = options.data_dir;
  settings.split = "test";
  (simulated ? settings.simulate : settings.limit) = count;
  std::string notice;
  images_ = choose_images(settings, checkpoint, notice);
  vae_ = checkpoint.vae.to(options.device, at::kFloat);
  fused_ = make_fused_decoder(vae_);
  identity_ = {{"checkpoint", checkpoint.sha256}, {"images", images_.digest}};
}

Study::Study(const ExperimentOptions& options, const Vae& vae, int64_t count)
    : options_(options), vae_(vae.to(options.device, at::kFloat)) {
  fused_ = make_fused_decoder(vae_);
  at::Generator rng = make_generator(derive_seed(0, Purpose::kSimulate));
  const Simulated drawn = simulate(vae, count, rng);
  images_.pixels = drawn.images;
  images_.latents = drawn.latents;
  images_.source = "simulated";
  std::string weights;
  for (const auto& [name, tensor] : vae.named_tensors()) weights += bytes_of(tensor);
  identity_ = {{"weights", sha256(weights)}, {"images", sha256(bytes_of(drawn.images))}};
}

int64_t Study::laplace_cost() const {
  const VaePosterior one(vae_, images_.pixels.slice(0, 0, 1).to(options_.device), {}, fused_);
  at::Generator rng = make_generator(0, options_.device);
  return BaseRegistry::instance().make("base", "laplace")->build(one, rng).cost.densities;
}

json Study::compute(const std::string& flags, uint64_t seed) const {
  const EstimatorSettings settings = settings_of(flags, seed).estimator;
  Estimator estimator(settings);
  const int64_t count = images_.size();
  const auto posterior = [&](int64_t begin, int64_t end) {
    const auto part = [&](const at::Tensor& all) {
      return all.defined() ? all.slice(0, begin, end).to(options_.device, at::kFloat) : all;
    };
    return VaePosterior(vae_, part(images_.pixels), part(images_.latents), fused_);
  };
  Cost base, tuning, estimating;
  tuning +=
      estimator.tune_shared(posterior(0, std::min(settings.pilot_problems, count)), count).tuning;
  std::map<std::string, std::vector<json>> columns;
  for (int64_t begin = 0; begin < count; begin += kChunk) {
    const ChunkResult chunk =
        estimator.estimate(begin / kChunk, posterior(begin, std::min(begin + kChunk, count)));
    base += chunk.base;
    tuning += chunk.tuning;
    const ChunkRun& run = chunk.runs.front();
    estimating += run.cost;
    for (const auto& [name, column] : ChunkRun::columns())
      for (const double value : run.*column) columns[name].push_back(json_number(value));
  }
  json cell = columns;
  const auto each = [&](const Cost& cost) {
    return static_cast<double>(cost.densities) / static_cast<double>(count);
  };
  cell["base"] = each(base);
  cell["tuning"] = each(tuning);
  cell["estimating"] = each(estimating);
  return cell;
}

std::vector<ArmResult> Study::run(const std::string& label, const std::vector<Arm>& arms,
                                  int64_t seeds, uint64_t first_seed) const {
  std::vector<Task> tasks;
  for (const Arm& arm : arms) {
    for (int64_t s = 0; s < seeds; ++s) {
      const uint64_t seed = first_seed + static_cast<uint64_t>(s);
      json key = identity_;
      key["settings"] = settings_of(arm.flags, seed).resolved;
      tasks.push_back({key, [this, flags = arm.flags, seed] { return compute(flags, seed); }});
    }
  }
  const std::vector<json> cells = run_tasks(options_, label, tasks);
  std::vector<ArmResult> results;
  for (size_t a = 0; a < arms.size(); ++a) {
    const auto first = cells.begin() + static_cast<int64_t>(a) * seeds;
    const std::vector<json> mine(first, first + seeds);
    results.push_back({matrix_of(mine, "log_normalizer"), matrix_of(mine, "std_error"),
                       mine.front().contains("upper") ? matrix_of(mine, "upper") : at::Tensor(),
                       matrix_of(mine, "flags"), mean_of(mine, "base"), mean_of(mine, "tuning"),
                       mean_of(mine, "estimating")});
  }
  return results;
}

}  // namespace crais
