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

/// Throws Error kArgument, which `what` begins, if the text holds a NUL character: the system would
/// take what stands before it.
void check_whole(const std::string& text, const std::string& what);

/// A parsed command line. Every value has been checked against its declaration before the
/// constructor returns. Besides the declared flags there are --help and --version.
class CommandLine {
 public:
  /// Throws Error kArgument naming the flag and what would be right. Throws Answer for --help and
  /// --version; run_main prints it.
  CommandLine(Synopsis synopsis, const std::vector<std::string>& arguments);
  CommandLine(Synopsis synopsis, int argc, const char* const* argv);

  // A flag must have been declared with the getter's type; asking otherwise is a bug (kInternal).
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
  std::vector<std::string> texts(const std::string& name) const {
    return value<std::vector<std::string>>(name);
  }

  // The same with a value for a flag that has none.
  int64_t integer(const std::string& name, int64_t otherwise) const {
    return has(name) ? integer(name) : otherwise;
  }
  std::string text(const std::string& name, const std::string& otherwise) const {
    return has(name) ? text(name) : otherwise;
  }

  /// True if the flag has a value, given or by default.
  bool has(const std::string& name) const;
  /// True if it was given.
  bool given(const std::string& name) const;

  /// Throws Error kArgument if the flag was given: "--max-evals does nothing WHY; leave it out".
  void refuse_idle(const std::string& name, const std::string& why) const;
  /// Throws Error kArgument for the first flag that was given and is none of `names`: "--steps:
  /// WHY".
  void allow_only(const std::set<std::string>& names, const std::string& why) const;

  /// Throws Error kArgument if both of two flags without a value are set.
  void exclude(const std::string& one, const std::string& other) const;

  const std::vector<std::string>& operands() const { return operands_; }

  /// Every declared flag with its resolved value, typed; null where it has none.
  nlohmann::json settings() const;

  const Synopsis& synopsis() const { return synopsis_; }
  static std::string help(const Synopsis& synopsis);

 private:
  struct Setting {
    Option option;
    nlohmann::json value;  // null: none
    bool given = false;
  };

  template <typename T>
  T value(const std::string& name) const {
    const nlohmann::json& found = setting(name).value;
    if (found.is_null()) throw internal_error("--" + name + " has no value");
    try {
      return found.get<T>();
    } catch (const nlohmann::json::exception&) {
      throw internal_error("--" + name + " is declared with another type");
    }
  }

  const Setting& setting(const std::string& name) const;
  void read_arguments(const std::vector<std::string>& arguments);

  Synopsis synopsis_;
  std::map<std::string, Setting> settings_;  // by the flags' names
  std::vector<std::string> operands_;
};

/// The words that give a program these settings (as `settings()` has them) beside the operands:
/// flags that say what the defaults say already, and those that it does not know, are left out.
std::vector<std::string> flags_of(const Synopsis& synopsis,
                                  const std::vector<std::string>& operands,
                                  const nlohmann::json& settings);

/// A line for the shell that gives a program these operands and settings (as `settings()` has
/// them).
std::string command_of(const Synopsis& synopsis, const std::vector<std::string>& operands,
                       const nlohmann::json& settings);

}  // namespace crais
