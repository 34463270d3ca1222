#include "core/cuda_recorder.h"

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>

namespace crais {
namespace {

class CudaRecorder : public Recorder {
 public:
  explicit CudaRecorder(at::Generator& rng) : device_(rng.device()) {
    graph_.register_generator_state(rng);
  }

  void record(const std::function<void()>& work) override {
    // The default stream cannot be recorded.
    const auto home = at::cuda::getCurrentCUDAStream(device_.index());
    const auto aside = at::cuda::getStreamFromPool(/*isHighPriority=*/false, device_.index());
    wait(aside, home);
    {
      const c10::cuda::CUDAStreamGuard guard(aside);
      graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
      work();
      graph_.capture_end();
    }
    wait(home, aside);
  }

  void replay() override { graph_.replay(); }

 private:
  static void wait(const at::cuda::CUDAStream& later, const at::cuda::CUDAStream& earlier) {
    at::cuda::CUDAEvent event;
    event.record(earlier);
    event.block(later);
  }

  at::Device device_;
  at::cuda::CUDAGraph graph_;
};

}  // namespace

std::unique_ptr<Recorder> make_cuda_recorder(at::Generator& rng) {
  return std::make_unique<CudaRecorder>(rng);
}

}  // namespace crais
