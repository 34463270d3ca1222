// Training states, by which train-vae goes on.
#include <nlohmann/json.hpp>

#include "harness.h"
#include "io/json.h"
#include "models/trainer.h"

namespace crais::fuzz {
namespace {

/// A trainer with the architecture of the states in the corpus.
Trainer& trainer() {
  Images images;
  images.rows = images.cols = 2;
  images.pixels = at::zeros({6, 4}, at::kByte);
  VaeArchitecture architecture;
  architecture.image_rows = architecture.image_cols = 2;
  architecture.latent = 1;
  architecture.hidden = {2};
  static Trainer trainer(make_vae(architecture, 0), {}, images, images);
  return trainer;
}

/// The settings that the state itself names, so that it is not one of another run.
nlohmann::json own_settings(std::string_view input) {
  try {
    return parse_json(input.substr(0, input.find('\n')), "settings").at("settings");
  } catch (const std::exception&) {
    return nlohmann::json::object();
  }
}

}  // namespace

void read(std::string_view input) {
  const std::string path = file(safetensors(input, "crais_training"));
  trainer().restore(read_training_state(path, own_settings(input)));
  trainer().finished();
  trainer().best_metrics();
  for (const EpochMetrics& metrics : trainer().metrics()) to_text(metrics);
}

}  // namespace crais::fuzz
