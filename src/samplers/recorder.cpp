#include "samplers/recorder.h"

#ifdef CRAIS_CUDA_GRAPHS
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdlib>
#include <string>
#endif

namespace crais {

#ifdef CRAIS_CUDA_GRAPHS
namespace {

class CudaRecorder : public Recorder {
 public:
  explicit CudaRecorder(at::Generator& rng) : device_(rng.device()) {
    graph_.register_generator_state(rng);
  }

  void record(const std::function<void()>& work) override {
    // The default stream cannot be recorded; another must find the work's tensors complete.
    c10::cuda::getCurrentCUDAStream(device_.index()).synchronize();
    const c10::cuda::CUDAStreamGuard aside(
        c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device_.index()));
    graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    work();
    graph_.capture_end();
  }

  void replay() override { graph_.replay(); }

 private:
  at::Device device_;
  at::cuda::CUDAGraph graph_;
};

}  // namespace

std::unique_ptr<Recorder> make_recorder(at::Generator& rng) {
  const char* wish = std::getenv("CRAIS_CUDA_GRAPHS");
  if (!rng.device().is_cuda() || (wish != nullptr && std::string(wish) == "0")) return nullptr;
  return std::make_unique<CudaRecorder>(rng);
}
#else
std::unique_ptr<Recorder> make_recorder(at::Generator& /*rng*/) { return nullptr; }
#endif

}  // namespace crais
