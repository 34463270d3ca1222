// safetensors files.
#include "io/safetensors.h"

#include "harness.h"

void crais::fuzz::read(std::string_view input) {
  is_safetensors(input);
  const SafeTensors content = parse_safetensors(input, "input");
  serialise_safetensors(content);
}
