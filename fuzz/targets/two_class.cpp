// Tables of two classes, as the UCI repository has them.
#include "data/two_class.h"

#include "harness.h"

void crais::fuzz::read(std::string_view input) { read_two_class(file(input), ""); }
