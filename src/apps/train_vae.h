// The program train-vae: images in, a checkpoint out.
#pragma once

namespace crais {

/// Parses the command line and trains. Throws Error; returns the exit code otherwise.
int train_vae(int argc, const char* const* argv);

}  // namespace crais
