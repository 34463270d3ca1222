// The pickle within a file of torch.save.
#include "io/torch_pickle.h"

#include "harness.h"

void crais::fuzz::read(std::string_view input) { parse_torch_pickle(input, "input"); }
