// Compressed files.
#include "harness.h"
#include "io/zip.h"

void crais::fuzz::read(std::string_view input) { gunzip(input, "input"); }
