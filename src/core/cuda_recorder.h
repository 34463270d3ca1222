// The recorder of CUDA: built only where LibTorch and a CUDA toolkit's headers allow.
#pragma once

#include <memory>

#include "core/recorder.h"

namespace crais {

std::unique_ptr<Recorder> make_cuda_recorder(at::Generator& rng);

}  // namespace crais
