// Compressed files.
#include "io/gzip.h"

#include "harness.h"

void crais::fuzz::read(std::string_view input) {
  attempt([&] { gunzip(input, "input", 16); });
  gunzip(input, "input");
}
