#include "core/recorder.h"

#include <cstdlib>
#include <string>

#ifdef CRAIS_CUDA_GRAPHS
#include "core/cuda_recorder.h"
#endif

namespace crais {

std::unique_ptr<Recorder> make_recorder([[maybe_unused]] at::Generator& rng) {
#ifdef CRAIS_CUDA_GRAPHS
  const char* wish = std::getenv("CRAIS_CUDA_GRAPHS");
  if (rng.device().is_cuda() && wish != nullptr && std::string(wish) == "1")
    return make_cuda_recorder(rng);
#endif
  return nullptr;
}

}  // namespace crais
