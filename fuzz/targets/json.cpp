// JSON, and text on its way back.
#include "io/json.h"

#include "harness.h"

void crais::fuzz::read(std::string_view input) {
  quoted(std::string(input));
  const nlohmann::json value = parse_json(input, "input");
  parse_json(to_text(value), "what was written");
}
