// The words of an experiment: texts with names in them, and sums.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace crais {

using Measures = std::map<std::string, double>;

/// The words with each "{name}" replaced by that value, in which names are replaced too, and each
/// "{=sum}" by its number to three digits. Throws Error kData if there is no such value.
std::string text(const nlohmann::json& values, const std::string& words, int depth = 0);

/// Numbers, measures and names with + - * / between them, all one space apart, from left to right.
/// "paper/linear/0" is an entry of the value `paper`; NaN if `paper` has none. Throws as text.
double number(const nlohmann::json& values, const std::string& sum, const Measures& measures = {},
              int depth = 0);
/// The sum `name`, rounded; `otherwise` if there is none.
int64_t integer(const nlohmann::json& values, const std::string& name, int64_t otherwise);

}  // namespace crais
