// Results as JSON, and back. Results that are read are checked for ranges and consistency.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "evaluation/tuned_estimator.h"

namespace crais {

nlohmann::json to_json(const Cost& cost);
nlohmann::json to_json(const Plan& plan);
nlohmann::json to_json(const Witness& witness);
nlohmann::json to_json(const Rounds& rounds);
nlohmann::json to_json(const ChunkResult& result);

/// The inverse functions. Each throws Error kData, one line that begins with `source`, for a field
/// that is missing, of another type, out of range or inconsistent with others: betas that do not
/// rise from 0 to 1, step sizes not above 0, lists of unequal lengths, runs that are not repeats of
/// methods.
Cost cost_from(const nlohmann::json& object, const std::string& key, const std::string& source);
Witness witness_from(const nlohmann::json& object, const std::string& source);
Plan plan_from(const nlohmann::json& object, const std::string& source);
Rounds rounds_from(const nlohmann::json& object, const std::string& source);
ChunkResult chunk_from(const nlohmann::json& object, const std::string& source);

}  // namespace crais
