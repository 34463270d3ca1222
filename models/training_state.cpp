#include "models/training_state.h"

#include <nlohmann/json.hpp>

#include "io/json.h"
#include "io/safetensors.h"
#include "models/file_fields.h"
#include "util/error.h"

namespace crais {
namespace {

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
