// What exported models say of themselves. No code of theirs is loaded.
#include "harness.h"
#include "kernels/fused_decoder.h"
#include "models/function_model.h"
#include "models/model_manifest.h"

void crais::fuzz::read(std::string_view input) {
  const ModelManifest manifest = read_manifest(safetensors(input, "crais"), "input");
  if (manifest.vae)
    check_values(manifest, NetworkModel(manifest, "input", at::kCPU, at::kFloat), "input");
  if (!manifest.decoder) return;
  const at::Tensor &z = manifest.array("check.z"), &x = manifest.array("check.x");
  if (const auto fused = make_fused_decoder(*manifest.decoder))
    fused->evaluate(z.unsqueeze(1).contiguous(), x.flatten(1).contiguous());
}
