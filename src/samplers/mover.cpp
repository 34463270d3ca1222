#include "samplers/mover.h"

#include <utility>
#include <vector>

#include "util/interrupt.h"

#ifdef CRAIS_CUDA_GRAPHS
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdlib>
#include <string>
#endif

namespace crais {
namespace {

std::vector<at::Tensor> tensors(const Particles& particles) {
  return {particles.e, particles.log_q0, particles.log_gamma, particles.grad_log_gamma,
          particles.momentum};
}

Particles clone(const Particles& particles) {
  const auto copy = [](const at::Tensor& x) { return x.defined() ? x.clone() : x; };
  return {copy(particles.e), copy(particles.log_q0), copy(particles.log_gamma),
          copy(particles.grad_log_gamma), copy(particles.momentum)};
}

void copy(const Particles& from, const Particles& to) {
  const std::vector<at::Tensor> sources = tensors(from), places = tensors(to);
  for (size_t i = 0; i < places.size(); ++i)
    if (places[i].defined()) at::Tensor(places[i]).copy_(sources[i]);
}

#ifdef CRAIS_CUDA_GRAPHS
class CudaRecorder : public Recorder {
 public:
  explicit CudaRecorder(at::Generator& rng) : device_(rng.device()) {
    graph_.register_generator_state(rng);
  }

  void record(const std::function<void()>& work) override {
    // The default stream cannot be recorded, and another stream must find complete tensors.
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
#endif

}  // namespace

#ifdef CRAIS_CUDA_GRAPHS
std::unique_ptr<Recorder> make_recorder(at::Generator& rng) {
  const char* wish = std::getenv("CRAIS_CUDA_GRAPHS");
  if (!rng.device().is_cuda() || (wish != nullptr && std::string(wish) == "0")) return nullptr;
  return std::make_unique<CudaRecorder>(rng);
}
#else
std::unique_ptr<Recorder> make_recorder(at::Generator& /*rng*/) { return nullptr; }
#endif

Mover::Mover(const Problem& problem, const Path& path, const Transition& transition,
             at::Generator& rng, std::unique_ptr<Recorder> recorder)
    : problem_(problem),
      path_(path),
      transition_(transition),
      rng_(rng),
      recorder_(std::move(recorder)) {}

Mover::Mover(const Problem& problem, const Path& path, const Transition& transition,
             at::Generator& rng)
    : Mover(problem, path, transition, rng,
            problem.target().traits().is_replayable && path.is_replayable() ? make_recorder(rng)
                                                                            : nullptr) {}

Moved Mover::operator()(const Particles& particles, const at::Tensor& beta,
                        const at::Tensor& step_size) {
  stop_if_interrupted();  // a replay evaluates out of Problem's sight
  const Arguments arguments{particles, beta, step_size};
  if (recorder_ && has_moved_) return replayed(arguments);
  has_moved_ = true;
  return step(arguments);
}

Moved Mover::step(const Arguments& arguments) const {
  return transition_.step(problem_, path_, arguments.particles, arguments.beta, arguments.step_size,
                          rng_);
}

Moved Mover::replayed(const Arguments& arguments) {
  if (recorded_) {
    copy(arguments.particles, recorded_->particles);
    recorded_->beta.copy_(arguments.beta);
    recorded_->step_size.copy_(arguments.step_size);
  } else {
    recorded_ = {clone(arguments.particles), arguments.beta.clone(), arguments.step_size.clone()};
    recorder_->record([this] { moved_ = step(*recorded_); });
  }
  recorder_->replay();
  return moved_;
}

}  // namespace crais
