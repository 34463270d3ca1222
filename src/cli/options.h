// Declarations of flags: each once, with its type, range, default and help.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/limits.h"

namespace crais {

/// One flag. The functions in `option` make it, and its members narrow it:
///   option::integer("steps", "T", {"64"}, "temperatures").at_least(1)
struct Option {
  enum class Kind { kFlag, kInteger, kNumber, kText };

  std::string name;        // without the dashes
  std::string value_name;  // in --help; also defines the choices: see choices_of, word_of
  std::vector<std::string> fallback;  // in the form of the command line; {}: no value
  std::string help;
  Kind kind = Kind::kText;
  /// May be given several times. Values may contain commas, as the specification
  /// "constant-rate:32,max-step=0.1" does.
  bool many = false;
  bool split = false;     // several values may stand in one text, separated by commas
  bool is_basic = false;  // in --help, not only in --help all
  Range range = {};       // for numbers

  Option at_least(double least) const { return in(Range::at_least(least)); }
  Option above(double bound) const { return in(Range::above(bound)); }
  Option between(double low, double high) const { return in(Range::between(low, high)); }
  /// A list: --hidden 200,200 or --hidden 200 --hidden 200.
  Option listed() const {
    return with([](Option& option) { option.many = option.split = true; });
  }
  /// A flag that many people type: see CommandLine::help.
  Option basic() const {
    return with([](Option& option) { option.is_basic = true; });
  }
  /// The flag with another default. `note` explains the default in --help.
  Option by_default(const std::vector<std::string>& values, const std::string& note = "") const {
    return with([&](Option& option) {
      option.fallback = values;
      option.help += note;
    });
  }

 private:
  template <class Change>
  Option with(const Change& change) const {
    Option option = *this;
    change(option);
    return option;
  }
  Option in(const Range& values) const {
    return with([&](Option& option) { option.range = values; });
  }
};

/// A flag without a default ({}) has no value until it is given: see CommandLine::has.
namespace option {

Option flag(std::string name, std::string help);
/// A flag with a value of one kind: integer("steps", "T", {"64"}, "temperatures").
template <Option::Kind kKind>
Option valued(std::string name, std::string value_name, std::vector<std::string> fallback,
              std::string help) {
  return {std::move(name), std::move(value_name), std::move(fallback), std::move(help), kKind};
}
inline constexpr auto integer = valued<Option::Kind::kInteger>;  // NOLINT: named as functions are
inline constexpr auto number = valued<Option::Kind::kNumber>;    // NOLINT
inline constexpr auto text = valued<Option::Kind::kText>;        // NOLINT

// Flags that are the same in every program.
Option device();                       // --device auto|cpu|cuda[:N], parsed by parse_device
Option threads(int64_t fallback = 0);  // --threads N, 0 for all cores
Option seed(int64_t fallback);         // --seed N
Option quiet();                        // --quiet

}  // namespace option

struct OptionGroup {
  std::string title;  // "Estimator"
  std::vector<Option> options;
};

/// A value of --preset: it changes the defaults of some flags.
struct Preset {
  std::string name;
  std::string summary;
  std::vector<std::pair<std::string, std::string>> defaults;  // flag, value
};

/// The interface of a program: its operands and flags.
struct Synopsis {
  std::string program;        // "eval-loglik"
  std::string summary;        // one sentence
  std::string operands = "";  // "CHECKPOINT", as in --help
  size_t min_operands = 0;
  size_t max_operands = 0;
  std::vector<OptionGroup> groups;
  std::vector<Preset> presets = {};  // empty: no --preset; else the first is the default
  std::string examples = "";         // the end of --help all, printed verbatim; see there
};

}  // namespace crais
