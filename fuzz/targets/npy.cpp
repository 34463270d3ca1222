// NumPy's .npy.
#include "io/npy.h"

#include "harness.h"

void crais::fuzz::read(std::string_view input) { parse_npy(input, "input"); }
