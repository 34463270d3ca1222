// One row for each field of EstimateOptions, the only place that describes it. The range check,
// JSON, flags, --help, names in messages, docs/reference.md and Python's keyword arguments are made
// from these rows.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/limits.h"
#include "evaluation/options.h"

namespace crais {

/// A field. In `flag` and `help`, PROBLEM stands for the program's word for a problem; other fields
/// stand in backquotes, as in messages.
struct OptionRow {
  template <typename T>
  using Of = T EstimateOptions::*;
  using Field = std::variant<Of<bool>, Of<int64_t>, Of<uint64_t>, Of<double>, Of<std::string>,
                             Of<std::optional<int64_t>>, Of<std::optional<double>>,
                             Of<std::vector<std::string>>>;
  enum class Record { kAlways, kIfSet, kNever };

  std::string group;  // of flags; empty: the program declares the flag itself
  Field field;
  std::string name;        // of the field
  std::string flag;        // empty: the name with dashes
  std::string value_name;  // in --help; see choices_of, word_of
  std::string help;
  Range range = {};                  // for numbers
  std::string (*names)() = nullptr;  // the names that a text may have: more help, one a line
  Record record = Record::kAlways;   // in JSON
  bool is_basic = false;             // in --help, not only in --help all
};

const std::vector<OptionRow>& option_table();

/// The row of a field. Throws std::out_of_range for an unknown name.
const OptionRow& option_row(const std::string& name);

/// The flag of a field: "pilot-images" if a problem is an "image".
std::string flag_of(const std::string& name, const std::string& problem);

/// `text` with the program's word for PROBLEM: "annealed chains for each image".
std::string of_problem(std::string text, const std::string& problem);

/// Throws Error kArgument that names the field for a value out of range or given twice.
void check_row(const OptionRow& row, const EstimateOptions& options);

/// The value of the field; null if it is absent.
nlohmann::json value_of(const OptionRow& row, const EstimateOptions& options);

/// Sets the field: the inverse of value_of. Null leaves the default. A number may be a text. Throws
/// Error kArgument for a text that is not a number.
void set_value(const OptionRow& row, const nlohmann::json& value, EstimateOptions& options);

/// Every field that determines results, by name.
nlohmann::json to_json(const EstimateOptions& options);

}  // namespace crais
