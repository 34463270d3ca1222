// MNIST's files, plain and compressed.
#include "harness.h"
#include "io/mnist_files.h"

void crais::fuzz::read(std::string_view input) {
  const std::string path = file(input);
  attempt([&] { read_idx_labels(path); });
  read_idx_images(path);
}
