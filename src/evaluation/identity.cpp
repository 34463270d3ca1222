#include "evaluation/identity.h"

#include <nlohmann/json.hpp>

#include "io/json.h"
#include "kernels/fused_decoder.h"
#include "kernels/processor.h"
#include "util/version.h"

namespace crais {

using nlohmann::json;

json computed_by() {
  const std::string evaluator = chosen_evaluator();
  const bool narrow =
      evaluator != "aten" && has_bfloat16_products();  // see DecoderPosterior::curvature
  return {{"sources", source_digest()},
          {"libtorch", libtorch_version()},
          {"evaluator", evaluator},
          {"jacobians", narrow ? "bfloat16" : "as evaluated"},
          {"compiler", __VERSION__}};
}

std::string difference_of_builds(const json& stored) {
  const json here = computed_by();
  for (const auto& [key, value] : here.items()) {
    const json there = stored.is_object() ? stored.value(key, json()) : json();
    if (there != value)
      return key + " " + (there.is_string() ? quoted(there.get<std::string>()) : "unknown") +
             " there, " + value.dump() + " here";
  }
  return "";
}

}  // namespace crais
