// Arrays of numpy.savez, whose archive is in order.
#include "data/array_file.h"
#include "harness.h"

void crais::fuzz::read(std::string_view input) {
  const std::string path = file(archive(input));
  attempt([&] { read_array_file(path + ":a"); });
  read_array_file(path);
}
