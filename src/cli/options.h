// How a program declares its flags: each once, with its type, range, default and help.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/limits.h"

namespace crais {

/// One flag. Made by the functions in `option`, narrowed by the members:
///   option::integer("steps", "T", {"64"}, "temperatures").at_least(1)
struct Option {
  enum class Kind { kFlag, kInteger, kNumber, kText };

  std::string name;        // without the dashes
  std::string value_name;  // as --help shows it; says what there is to choose: choices_of, word_of
  std::vector<std::string> fallback;  // as the command line would say it; {}: no value
  std::string help;
  Kind kind = Kind::kText;
  bool many = false;    // may be given several times
  bool split = false;   // and several values may stand between commas
  bool dashed = false;  // a value may begin with dashes: it is flags of another program
  Range range;          // of numbers

  Option in(const Range& values) const {
    Option option = *this;
    option.range = values;
    return option;
  }
  Option at_least(double least) const { return in(Range::at_least(least)); }
  Option above(double bound) const { return in(Range::above(bound)); }
  Option between(double low, double high) const { return in(Range::between(low, high)); }
  /// --hidden 200,200 or --hidden 200 --hidden 200.
  Option listed() const {
    Option option = *this;
    option.many = option.split = true;
    return option;
  }
  /// The same, but that commas belong to a value, which is a specification as
  /// "constant-rate:32,max-step=0.1".
  Option repeatable() const {
    Option option = *this;
    option.many = true;
    return option;
  }
  /// Another default, of which `note` says more in help.
  Option by_default(const std::vector<std::string>& values, const std::string& note = "") const {
    Option option = *this;
    option.fallback = values;
    option.help += note;
    return option;
  }
};

/// Without a default ({}) a flag has no value until it is given: see CommandLine::has.
namespace option {

Option flag(std::string name, std::string help);
Option integer(std::string name, std::string value_name, std::vector<std::string> fallback,
               std::string help);
Option number(std::string name, std::string value_name, std::vector<std::string> fallback,
              std::string help);
Option text(std::string name, std::string value_name, std::vector<std::string> fallback,
            std::string help);

// The same in every program.
Option device();                       // --device auto|cpu|cuda[:N]; read by parse_device
Option threads(int64_t fallback = 0);  // --threads N, 0 for all cores
Option seed(int64_t fallback);         // --seed N
Option quiet();                        // --quiet

}  // namespace option

struct OptionGroup {
  std::string title;  // "Estimator"
  std::vector<Option> options;
};

/// A value of --preset: other defaults for some flags.
struct Preset {
  std::string name;
  std::string summary;
  std::vector<std::pair<std::string, std::string>> defaults;  // flag, value
};

/// What a program is called with.
struct Synopsis {
  std::string program;        // "eval-loglik"
  std::string summary;        // one sentence
  std::string operands = "";  // "CHECKPOINT", as --help shows them
  size_t min_operands = 0;
  size_t max_operands = 0;
  std::vector<OptionGroup> groups;
  std::vector<Preset> presets = {};  // none: no --preset; else the first is its default
  std::string examples = "";         // ends --help, as it stands
};

}  // namespace crais
