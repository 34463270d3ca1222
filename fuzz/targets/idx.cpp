// MNIST's files, plain and compressed.
#include "io/idx.h"

#include "harness.h"

void crais::fuzz::read(std::string_view input) {
  const std::string path = file(input);
  attempt([&] { read_idx_labels(path); });
  read_idx_images(path);
}
