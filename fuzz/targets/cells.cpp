// What `reproduce` keeps of an experiment, read again.
#include "programs/reproduce/cells.h"

#include <nlohmann/json.hpp>

#include "harness.h"
#include "io/json.h"
#include "util/digest.h"
#include "util/error.h"

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
  std::vector<Task> tasks;  // a seed each
  for (const auto& [name, bytes] : parts(input)) {
    tasks.push_back({static_cast<int64_t>(tasks.size()), [] { return json(); }});
    file(name == "raw" ? bytes : sealed(bytes),
         cell_path(options, tasks.back().key).lexically_relative(folder()));
  }
  if (tasks.empty()) return;
  try {
    const VariantResult result = result_of(run_tasks(options, "cells", tasks));
    for (const auto& [name, values] : result.values) result.column(name);
  } catch (const json::exception&) {  // which reproduce says in a line
    throw data_error("a cell");
  }
}

}  // namespace crais::fuzz
