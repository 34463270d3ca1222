// Checkpoints of train-vae, and what evaluation makes of them.
#include "harness.h"
#include "kernels/fused_decoder.h"
#include "programs/eval_loglik/model.h"

void crais::fuzz::read(std::string_view input) {
  open_model(file(safetensors(input, "crais")), {}, at::kCPU, at::kFloat);
}
