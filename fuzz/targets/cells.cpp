// What `reproduce` keeps of an experiment, read again.
#include <nlohmann/json.hpp>

#include "harness.h"
#include "io/json.h"
#include "programs/reproduce/variant.h"
#include "util/error.h"
#include "util/files.h"

namespace crais::fuzz {
namespace {

using nlohmann::json;

/// With the digest that the result should have, where both are JSON.
std::string sealed(const std::string& result) {
  try {
    const json content = parse_json(result, "result");
    return json{{"result", content}, {"digest", sha256(content.dump())}}.dump();
  } catch (const Error&) {
    return result;
  }
}

}  // namespace

/// The results of two seeds, or a file as it is ("=== raw").
void read(std::string_view input) {
  ExperimentOptions options;
  options.cells = folder();
  options.quiet = options.accept_other_version = true;
  int64_t seeds = 0;
  for (const auto& [name, bytes] : parts(input))
    file(name == "raw" ? bytes : sealed(bytes),
         cell_path(options, seeds++).lexically_relative(folder()));
  if (seeds == 0) return;
  const auto make_task = [](const std::string& /*flags*/, uint64_t seed) -> Task {
    return {static_cast<int64_t>(seed), [] { return json(); }};
  };
  try {
    run_variants(options, "cells", {{"a variant", ""}}, seeds, 0, make_task);
  } catch (const json::exception&) {  // which reproduce says in a line
    throw data_error("a cell");
  }
}

}  // namespace crais::fuzz
