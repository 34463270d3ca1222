#include <cstdio>
#include <exception>

#include "apps/train_vae.h"
#include "core/error.h"

int main(int argc, char** argv) {
  try {
    return crais::train_vae(argc, argv);
  } catch (const crais::Error& error) {
    std::fprintf(stderr, "train-vae: %s\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train-vae: %s\n", error.what());
    return static_cast<int>(crais::ExitCode::kInternal);
  }
}
