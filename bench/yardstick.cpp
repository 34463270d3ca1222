#include "yardstick.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <time.h>
#include <torch/cuda.h>
#include <torch/version.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "cli/parse.h"
#include "cli/program.h"

namespace crais::bench {
namespace {

/// The processor time of this process, so that other programs do not count; for a GPU, the time
/// until it has finished.
double seconds(const std::function<void()>& run, at::Device device) {
  const auto now = [&] {
    if (device.is_cuda()) torch::cuda::synchronize(device.index());
    timespec time{};
    ::clock_gettime(device.is_cpu() ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
  };
  const double start = now();
  run();
  return now() - start;
}

/// The processor, LibTorch and its BLAS.
std::string machine() {
  std::string line, processor = "unknown processor";
  std::ifstream cpuinfo("/proc/cpuinfo");
  while (std::getline(cpuinfo, line))
    if (line.rfind("model name", 0) == 0) processor = line.substr(line.find(':') + 2);
  const std::string config = at::show_config();
  std::string blas = "its own BLAS";
  if (const auto at_blas = config.find("BLAS_INFO="); at_blas != std::string::npos)
    blas = config.substr(at_blas + 10, config.find(',', at_blas) - at_blas - 10);
  return processor + ", LibTorch " + TORCH_VERSION + " with " + blas;
}

}  // namespace

Arguments arguments_of(int argc, char** argv, int64_t rounds) {
  Arguments arguments{.rounds = rounds};
  int next = 1;
  if (next < argc && !std::isdigit(argv[next][0])) arguments.device = parse_device(argv[next++]);
  if (next < argc) arguments.rounds = std::atol(argv[next++]);
  for (; next < argc; ++next) arguments.numbers.push_back(std::atol(argv[next]));
  at::set_num_threads(1);
  if (std::getenv("CRAIS_DEFAULT_MALLOC") == nullptr) keep_freed_memory();
  std::printf("%s, on %s\n", machine().c_str(), arguments.device.str().c_str());
  return arguments;
}

void report(const std::string& group, const Arguments& arguments,
            const std::vector<Contender>& contenders, int64_t rounds, int64_t evaluations,
            double flops) {
  std::vector<std::vector<double>> times(contenders.size());
  for (int64_t round = -1; round < rounds; ++round)  // the first warms up
    for (size_t i = 0; i < contenders.size(); ++i) {
      const double time = seconds(contenders[i].run, arguments.device);
      if (round >= 0) times[i].push_back(time);
    }
  std::vector<double> medians;
  for (auto& all : times) {
    std::nth_element(all.begin(), all.begin() + int64_t(all.size() / 2), all.end());
    medians.push_back(all[all.size() / 2]);
  }
  std::printf("\n%s: %.0f GFLOP/s\n", group.c_str(), flops / medians[0] / 1e9);
  for (size_t i = 0; i < contenders.size(); ++i) {
    const double each = 1e6 * medians[i] / double(evaluations);
    std::printf("  %-32s %9.3f ms  %9.4f us an evaluation  %8.4f of the first\n",
                contenders[i].name.c_str(), 1e3 * medians[i], each, medians[i] / medians[0]);
  }
}

GemmFloor::GemmFloor(const Network& decoder, int64_t rows) {
  const auto options = decoder.layers.front().weight.options();
  activations_.push_back(at::randn({rows, decoder.layers.front().weight.size(1)}, options));
  for (const Layer& layer : decoder.layers) {
    weights_.push_back(layer.weight);
    activations_.push_back(at::randn({rows, layer.weight.size(0)}, options));
    gradients_.push_back(at::randn({rows, layer.weight.size(1)}, options));
    flops_ += 4.0 * double(rows) * double(layer.weight.numel());
  }
}

void GemmFloor::run() {
  for (size_t i = 0; i < weights_.size(); ++i)
    at::mm_out(activations_[i + 1], activations_[i], weights_[i].t());
  for (size_t i = weights_.size(); i > 0; --i)
    at::mm_out(gradients_[i - 1], i == weights_.size() ? activations_[i] : gradients_[i],
               weights_[i - 1]);
}

}  // namespace crais::bench
