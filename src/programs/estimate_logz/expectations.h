// Means under the target over all replicates, as estimate-logz says them.
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

/// One function of one method, over all problems and repeats: replicates of one density.
struct TargetExpectation {
  std::string method, name;          // "ais", "moments"
  std::vector<std::string> outputs;  // "z1", "z2"
  ExpectationEstimate estimate;
  std::optional<at::Tensor> truth;  // [J] of the means
};

/// Throws Error kArgument for a function that the target does not know.
void check_expectations(const std::vector<std::string>& names, const Target& target);

std::vector<TargetExpectation> expectations_of(const RunResults& results,
                                               const std::vector<std::string>& names,
                                               const Target& target);

nlohmann::json to_json(const std::vector<TargetExpectation>& expectations);
/// A line an output.
std::string expectations_csv(const std::vector<TargetExpectation>& expectations);
/// A table for people, and how its errors are known.
Table expectation_table(const TargetExpectation& expectation);
std::string reading_of(const ExpectationEstimate& estimate);

}  // namespace crais
