// Arrays of any file, told apart by their content.
#include "data/array_file.h"

#include "harness.h"

void crais::fuzz::read(std::string_view input) {
  const std::string path = file(input, "train-images-idx3-ubyte");
  attempt([&] { read_array_file(path + ":weights"); });
  read_array_file(path);
}
