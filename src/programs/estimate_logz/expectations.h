// Means under the target over all replicates, in the report of estimate-logz.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/target.h"
#include "estimates/expectation.h"
#include "evaluation/summary.h"
#include "report/table.h"

namespace crais {

/// The estimate of one function by one method, over all problems and repeats, which are replicates
/// of one density.
struct TargetExpectation {
  std::string method, name;          // "ais", "moments"
  std::vector<std::string> outputs;  // "z1", "z2"
  ExpectationEstimate estimate;
  std::optional<at::Tensor> truth;  // [J], true means
};

/// Throws Error kArgument for a function that does not know the target.
void check_expectations(const std::vector<std::string>& names, const Target& target);

std::vector<TargetExpectation> expectations_of(const RunResults& results,
                                               const std::vector<std::string>& names,
                                               const Target& target);

nlohmann::json to_json(const std::vector<TargetExpectation>& expectations);
/// The content of expectations.csv: a line for each output.
std::string expectations_csv(const std::vector<TargetExpectation>& expectations);
/// A table for people, with a note on the source of its errors.
Table expectation_table(const TargetExpectation& expectation);
std::string reading_of(const ExpectationEstimate& estimate);

}  // namespace crais
