// What `reproduce` keeps of an experiment, read again.
#include <nlohmann/json.hpp>

#include "harness.h"
#include "io/json.h"
#include "programs/reproduce/variant.h"
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

/// The cells of one variant, a seed each.
class Cells : public Subject {
 public:
  using Subject::Subject;

 private:
  Task task(const std::string& /*flags*/, uint64_t seed, bool /*for_plans*/) const override {
    return {static_cast<int64_t>(seed), [] { return json(); }};
  }
};

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
  try {
    Cells(options).run("cells", {{"a variant", ""}}, seeds);
  } catch (const json::exception&) {  // which reproduce says in a line
    throw data_error("a cell");
  }
}

}  // namespace crais::fuzz
