// The command line that all programs share.
//
//   int main(int argc, char** argv) {
//     return crais::run_main("train-vae", [&] {
//       const CommandLine cli(synopsis(), argc, argv);
//       const int64_t epochs = cli.integer("epochs");
//       ...
//       return 0;
//     });
//   }
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/parse.h"
#include "cli/program.h"
#include "util/error.h"

namespace crais {

/// Throws Error kArgument, which begins with `what`, if the text holds a NUL character: the system
/// would use only the text before it.
void check_whole(const std::string& text, const std::string& what);

/// What a caller gives each flag, by its name: an array of texts, numbers and `true`.
using FlagValues = std::map<std::string, nlohmann::json>;

/// A parsed command line. The constructor checks every value against its declaration.
class CommandLine {
 public:
  /// Throws Error kArgument that names the flag and what would be right. --help and --version are
  /// added to the declared flags: throws Answer for them, which run_main prints.
  CommandLine(Synopsis synopsis, const std::vector<std::string>& arguments);
  CommandLine(Synopsis synopsis, int argc, const char* const* argv);
  /// From values instead of words.
  CommandLine(Synopsis synopsis, std::vector<std::string> operands, const FlagValues& values);

  // A getter must have the type with which the flag was declared; another type is a bug
  // (kInternal).
  bool flag(const std::string& name) const { return value<bool>(name); }
  int64_t integer(const std::string& name) const { return value<int64_t>(name); }
  double number(const std::string& name) const { return value<double>(name); }
  std::string text(const std::string& name) const { return value<std::string>(name); }
  std::vector<int64_t> integers(const std::string& name) const {
    return value<std::vector<int64_t>>(name);
  }
  std::vector<double> numbers(const std::string& name) const {
    return value<std::vector<double>>(name);
  }

  // Getters with a fallback for a flag without a value.
  int64_t integer(const std::string& name, int64_t otherwise) const {
    return has(name) ? integer(name) : otherwise;
  }
  std::string text(const std::string& name, const std::string& otherwise) const {
    return has(name) ? text(name) : otherwise;
  }

  /// True if the flag has a value, from the user or by default.
  bool has(const std::string& name) const;
  /// True if the user gave the flag.
  bool given(const std::string& name) const { return setting(name).given; }
  /// The flags that the user gave.
  std::set<std::string> given() const;

  /// Throws Error kArgument if the user gave the flag: "--max-evals does nothing WHY; leave it
  /// out".
  void refuse_idle(const std::string& name, const std::string& why) const;
  /// Throws Error kArgument for the first given flag that is not in `names`: "--steps: WHY".
  void allow_only(const std::set<std::string>& names, const std::string& why) const;

  /// Throws Error kArgument if two flags without values are both set.
  void exclude(const std::string& one, const std::string& other) const;

  const std::vector<std::string>& operands() const { return operands_; }

  /// Every declared flag with its resolved, typed value; null if it has none.
  nlohmann::json settings() const;

  const Synopsis& synopsis() const { return synopsis_; }
  /// The text of --help: the basic flags, with the first line of what each says, and the first
  /// three examples. `all`, or a synopsis without basic flags: everything.
  static std::string help(const Synopsis& synopsis, bool all);

 private:
  struct Setting {
    Option option;
    nlohmann::json value;  // null: no value
    bool given = false;
  };

  template <typename T>
  T value(const std::string& name) const {
    const nlohmann::json& setting_value = setting(name).value;
    if (setting_value.is_null()) throw internal_error("--", name, " has no value");
    try {
      return setting_value.get<T>();
    } catch (const nlohmann::json::exception&) {
      throw internal_error("--", name, " is declared with another type");
    }
  }

  explicit CommandLine(Synopsis synopsis);  // every flag at its default
  const Setting& setting(const std::string& name) const;
  void take(std::vector<std::string> operands, const FlagValues& values);

  Synopsis synopsis_;
  std::map<std::string, Setting> settings_;  // by name of the flag
  std::vector<std::string> operands_;
};

/// A shell command line that gives a program these operands and settings (in the form of
/// `settings()`). Leaves out flags at their defaults and flags that the program does not know.
std::string command_of(const Synopsis& synopsis, const std::vector<std::string>& operands,
                       const nlohmann::json& settings);

}  // namespace crais
