// model_bench MODEL [IMAGES [ROUNDS [FORCE_DTYPE]]]: a whole run of eval-loglik's defaults on an
// exported model, in units of its own calls of `joint` timed alone at the same batch; then one call
// with forces in float32, in bfloat16, and of fused kernels where these know the decoder, in turns.
// One thread; a table, then JSON.
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/program.h"
#include "evaluation/run_problems.h"
#include "kernels/fused_decoder.h"
#include "models/package_model.h"
#include "models/script_model.h"
#include "targets/decoder_posterior.h"

namespace crais::bench {
namespace {

double seconds_of(const std::function<void()>& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Passes calls on, and counts rows and calls.
class Counting : public LatentModel {
 public:
  explicit Counting(std::shared_ptr<const LatentModel> model) : model_(std::move(model)) {}

  const ModelDescription& description() const override { return model_->description(); }
  std::string evaluator() const override { return model_->evaluator(); }
  int64_t batch() const override { return model_->batch(); }
  Density joint(const at::Tensor& z, const at::Tensor& x, const at::Tensor& y) const override {
    rows += z.size(0);
    ++calls;
    return model_->joint(z, x, y);
  }
  bool has_forces(at::ScalarType dtype) const override { return model_->has_forces(dtype); }
  bool forces_pay(at::ScalarType dtype) const override { return model_->forces_pay(dtype); }
  Density joint_with_forces(const at::Tensor& z, const at::Tensor& x, const at::Tensor& y,
                            at::ScalarType dtype) const override {
    forced += z.size(0);
    return model_->joint_with_forces(z, x, y, dtype);
  }
  std::optional<Posterior> encode(const at::Tensor& x, const at::Tensor& y) const override {
    return model_->encode(x, y);
  }
  std::optional<Output> output(const at::Tensor& z, const at::Tensor& y) const override {
    outputs += z.size(0);
    return model_->output(z, y);
  }
  std::optional<Density> prior(const at::Tensor& z) const override { return model_->prior(z); }
  std::optional<Moments> prior_moments() const override { return model_->prior_moments(); }

  mutable int64_t rows = 0, forced = 0, calls = 0, outputs = 0;

 private:
  std::shared_ptr<const LatentModel> model_;
};

/// A kernel and what it takes for all rows, seconds.
struct Fused {
  std::unique_ptr<FusedDecoder> decoder;
  double whole = HUGE_VAL, value = HUGE_VAL;
};

int run(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "model_bench MODEL [IMAGES [ROUNDS [FORCE_DTYPE]]]\n");
    return 64;
  }
  const std::string file = argv[1];
  const int64_t images = argc > 2 ? std::atol(argv[2]) : 64;
  const int64_t rounds = argc > 3 ? std::atol(argv[3]) : 3;
  at::set_num_threads(1);
  keep_freed_memory();
  const c10::NoGradGuard no_grad;
  const ModelFile opened(file);
  const auto read = [&] {
    return opened.kind == ModelFile::Kind::kScript ? read_script_model(opened)
                                                   : read_package_model(opened);
  };
  const auto model = std::make_shared<Counting>(read());
  std::vector<at::Tensor> rows;
  const auto source = read();
  for (int64_t i = 0; i < images; ++i) rows.push_back(source->draw(0, i).data);
  const auto target = std::make_shared<DecoderPosterior>(model, at::cat(rows));

  const int64_t batch = model->batch(), dim = target->dim();
  const at::Tensor z = at::randn({batch, dim});
  const at::Tensor x = at::cat(rows).repeat_interleave(batch / images + 1, 0).slice(0, 0, batch);
  EstimateOptions options;
  options.base = "laplace";
  options.force_dtype = argc > 4 ? argv[4] : "float32";
  std::vector<double> ratios, own, whole;
  for (int64_t round = 0; round < rounds; ++round) {
    model->rows = model->forced = model->calls = model->outputs = 0;
    whole.push_back(
        seconds_of([&] { run_problems(ProblemSource::of(target), Estimator(options)); }));
    // The same number of rows, and of outputs for the Laplace base, alone.
    const int64_t joints = model->rows / batch, outputs = model->outputs / batch;
    own.push_back(seconds_of([&] {
      for (int64_t i = 0; i < joints; ++i) source->joint(z, x, {});
      for (int64_t i = 0; i < model->forced / batch; ++i)
        source->joint_with_forces(z, x, {}, at::kBFloat16);
      for (int64_t i = 0; i < outputs; ++i) source->output(z, {});
    }));
    ratios.push_back(whole.back() / own.back());
  }
  std::sort(ratios.begin(), ratios.end());
  const double ratio = ratios[ratios.size() / 2];
  std::printf("%-32s %10s %8s %12s %10s %10s\n", "model", "rows", "batch", "whole run, s",
              "calls, s", "ratio");
  std::printf("%-32s %10ld %8ld %12.2f %10.2f %10.3f\n", model->description().name.c_str(),
              static_cast<long>(model->rows), static_cast<long>(batch), whole.back(), own.back(),
              ratio);
  // One call at a time, in turns: what neighbours take falls on both.
  double plain = HUGE_VAL, forced = HUGE_VAL;
  std::vector<Fused> fused;
  if (source->decoder() != nullptr)
    for (const FusedKernel* kernel : available_kernels())
      if (FusedDecoder::supports(*source->decoder(), *kernel))
        fused.push_back({std::make_unique<FusedDecoder>(*source->decoder(), *kernel)});
  constexpr int64_t kFusedRows = 384;  // whole tiles for every kernel
  const at::Tensor many = at::randn({1, kFusedRows, dim}), one = x.slice(0, 0, 1).flatten(1);
  const bool has_forces = source->has_forces(at::kBFloat16);
  for (int64_t i = 0; i < 100 * rounds; ++i) {
    plain = std::min(plain, seconds_of([&] { source->joint(z, x, {}); }));
    if (has_forces)
      forced =
          std::min(forced, seconds_of([&] { source->joint_with_forces(z, x, {}, at::kBFloat16); }));
    for (Fused& one_of : fused) {
      const FusedDecoder& decoder = *one_of.decoder;
      one_of.whole = std::min(one_of.whole, seconds_of([&] { decoder.evaluate(many, one); }));
      one_of.value = std::min(one_of.value, seconds_of([&] { decoder.log_density(many, one); }));
    }
  }
  const double micro = 1e6 / static_cast<double>(batch);
  std::printf("a row of one call: float32 %.1f us", micro * plain);
  if (has_forces) std::printf(", forces in bfloat16 %.1f us", micro * forced);
  std::printf("\n");
  nlohmann::json kernels = nlohmann::json::object(), values = kernels;
  for (const Fused& one_of : fused) {
    const std::string kernel = one_of.decoder->name();
    kernels[kernel] = one_of.whole / kFusedRows;
    values[kernel] = one_of.value / kFusedRows;
    std::printf("  %-20s %6.1f us, the value alone %6.1f\n", kernel.c_str(),
                1e6 / kFusedRows * one_of.whole, 1e6 / kFusedRows * one_of.value);
  }
  const nlohmann::json result = {{"model", file},
                                 {"batch", batch},
                                 {"rows", model->rows},
                                 {"ratio", ratio},
                                 {"ratios", ratios},
                                 {"run_seconds", whole},
                                 {"call_seconds", own},
                                 {"fused_row_seconds", kernels},
                                 {"fused_value_seconds", values}};
  std::printf("%s\n", result.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace crais::bench

int main(int argc, char** argv) {
  return crais::run_main("model_bench", [&] { return crais::bench::run(argc, argv); });
}
