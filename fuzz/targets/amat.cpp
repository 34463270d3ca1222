// Larochelle's binary images, one a line.
#include "harness.h"
#include "io/mnist_files.h"

void crais::fuzz::read(std::string_view input) { read_amat(file(input)); }
