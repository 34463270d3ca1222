// One row for each field of EstimateOptions: all that is said of it anywhere. The range check,
// JSON, flags, --help, names in messages, docs/reference.md and Python's keyword arguments are made
// of it.
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

/// A field. In `flag` and `help` PROBLEM stands for what a program estimates a normaliser of, and
/// other fields stand in backquotes, as in messages.
struct OptionRow {
  template <typename T>
  using Of = T EstimateOptions::*;
  using Field = std::variant<Of<bool>, Of<int64_t>, Of<uint64_t>, Of<double>, Of<std::string>,
                             Of<std::optional<int64_t>>, Of<std::optional<double>>,
                             Of<std::vector<std::string>>>;
  enum class Record { kAlways, kIfSet, kNever };

  std::string group;  // of flags; empty: a program declares the flag, in other terms
  Field field;
  std::string name;        // of the field
  std::string flag;        // empty: the name with dashes
  std::string value_name;  // as --help shows it; see choices_of, word_of
  std::string help;
  Range range = {};                  // of numbers
  std::string (*names)() = nullptr;  // that a text may have: more help, a line each
  Record record = Record::kAlways;   // in JSON
};

const std::vector<OptionRow>& option_table();

/// Throws std::out_of_range for a name that no field has.
const OptionRow& option_row(const std::string& name);

/// The flag of a field, "pilot-images", where a problem is an "image".
std::string flag_of(const std::string& name, const std::string& problem);

/// "annealed chains an image".
std::string of_problem(std::string text, const std::string& problem);

/// Throws Error kArgument, naming the field, for a value out of range or given twice.
void check_row(const OptionRow& row, const EstimateOptions& options);

/// The field's value; null where it is absent.
nlohmann::json value_of(const OptionRow& row, const EstimateOptions& options);

/// The inverse: null leaves the default. A number may be a text. Throws Error kArgument for a text
/// that is none.
void set_value(const OptionRow& row, const nlohmann::json& value, EstimateOptions& options);

/// Every field that decides results, under its name.
nlohmann::json to_json(const EstimateOptions& options);

}  // namespace crais
