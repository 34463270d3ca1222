// The program train-vae: images in, a checkpoint out.
#pragma once

namespace crais {

/// The exit code.
int train_vae(int argc, const char* const* argv);

}  // namespace crais
