// Larochelle's binary images, one a line.
#include "io/amat.h"

#include "harness.h"

void crais::fuzz::read(std::string_view input) { read_amat(file(input)); }
