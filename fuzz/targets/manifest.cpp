// What exported models say of themselves. No code of theirs is loaded.
#include "harness.h"
#include "models/mlp_model.h"
#include "models/model_manifest.h"

void crais::fuzz::read(std::string_view input) {
  const ModelManifest manifest = read_manifest(safetensors(input, "crais"), "input");
  if (manifest.vae) check_values(manifest, MlpModel(manifest, "input"), "input");
}
