// model_bench MODEL [ROUNDS]: what a row of an exported model costs, in units of its own code's: by
// forces in bfloat16, and by fused kernels where these know the decoder. A table, then JSON.
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstdio>

#include "cli/program.h"
#include "kernels/fused_decoder.h"
#include "models/package_model.h"
#include "models/script_model.h"
#include "yardstick.h"

namespace crais::bench {
namespace {

int run(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "model_bench MODEL [ROUNDS]\n");
    return 64;
  }
  const Arguments arguments = arguments_of(argc - 1, argv + 1, 200);
  const c10::NoGradGuard no_grad;
  const ModelFile opened(argv[1]);
  const std::shared_ptr<const LatentModel> model = opened.kind == ModelFile::Kind::kScript
                                                       ? read_script_model(opened)
                                                       : read_package_model(opened);
  // As many rows for all: whole tiles for every kernel.
  const int64_t batch = model->batch(), calls = std::max<int64_t>(1, 384 / batch);
  const at::Tensor one = model->draw(0, 0).data;
  const at::Tensor x = one.repeat_interleave(batch, 0);
  const at::Tensor z = at::randn({1, calls * batch, model->description().latent});
  const auto each_call = [&](const auto& call) {
    for (int64_t i = 0; i < calls; ++i) call(z[0].slice(0, i * batch, (i + 1) * batch));
  };
  std::vector<Contender> contenders = {
      {"its own code", [&] { each_call([&](const auto& part) { model->joint(part, x, {}); }); }}};
  if (model->has_forces(at::kBFloat16))
    contenders.push_back({"the same, forces in bfloat16", [&] {
                            each_call([&](const auto& part) {
                              model->joint_with_forces(part, x, {}, at::kBFloat16);
                            });
                          }});
  if (model->decoder() != nullptr)
    for (const FusedKernel* kernel : available_kernels()) {
      if (!FusedDecoder::supports(*model->decoder(), *kernel)) continue;
      const auto fused = std::make_shared<FusedDecoder>(*model->decoder(), *kernel);
      contenders.push_back({fused->name(), [&, fused] { fused->evaluate(z, one.flatten(1)); }});
      contenders.push_back({std::string(fused->name()) + " value",
                            [&, fused] { fused->log_density(z, one.flatten(1)); }});
    }
  Report().add(argv[1], contenders, arguments.rounds, calls * batch);
  return 0;
}

}  // namespace
}  // namespace crais::bench

int main(int argc, char** argv) {
  return crais::run_main("model_bench", [&] { return crais::bench::run(argc, argv); });
}
