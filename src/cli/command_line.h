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
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/parse.h"
#include "cli/program.h"

namespace crais {

/// A parsed command line. Every value has been checked against its declaration before the
/// constructor returns. Besides the declared flags there are --config FILE (a JSON object of flag
/// names and values, overridden by the command line), --help and --version.
class CommandLine {
 public:
  /// Throws Error: kArgument naming the flag and what would be right; kNoInput or kData for the
  /// --config file. Throws Answer for --help and --version; run_main prints it.
  CommandLine(Synopsis synopsis, const std::vector<std::string>& arguments);
  CommandLine(Synopsis synopsis, int argc, const char* const* argv);

  // A flag must have been declared with the getter's type; asking otherwise is a bug (kInternal).
  bool flag(const std::string& name) const;
  int64_t integer(const std::string& name) const;
  double number(const std::string& name) const;
  std::string text(const std::string& name) const;  // of texts and choices
  std::vector<int64_t> integers(const std::string& name) const;
  std::vector<double> numbers(const std::string& name) const;
  std::vector<std::string> texts(const std::string& name) const;

  // The same with a value for a flag that has none.
  int64_t integer(const std::string& name, int64_t otherwise) const;
  double number(const std::string& name, double otherwise) const;
  std::string text(const std::string& name, const std::string& otherwise) const;

  /// True if the flag has a value, given or by default.
  bool has(const std::string& name) const;
  /// True if it was given, on the command line or in the --config file.
  bool given(const std::string& name) const;

  /// True if it was given, but for a default that a --config file repeats, as `settings()` does.
  bool chosen(const std::string& name) const;

  /// Throws Error kArgument if the flag was chosen: "--max-evals does nothing WHY; leave it out".
  void refuse_idle(const std::string& name, const std::string& why) const;
  /// Throws Error kArgument for the first flag that was given and is none of `names`: "--steps:
  /// WHY".
  void allow_only(const std::set<std::string>& names, const std::string& why) const;

  /// Throws Error kArgument if both of two flags without a value are set.
  void exclude(const std::string& one, const std::string& other) const;

  const std::vector<std::string>& operands() const { return operands_; }

  /// Every declared flag with its resolved value, typed; null where it has none. Is itself a
  /// valid --config file.
  nlohmann::json settings() const;

  const Synopsis& synopsis() const { return synopsis_; }
  static std::string help(const Synopsis& synopsis);

 private:
  struct Setting {
    Option option;
    std::vector<std::string> values;
    bool given = false;
    bool is_typed = false;  // on the command line
  };

  const Setting& setting(const std::string& name) const;
  const Setting& setting(const std::string& name, Option::Kind kind, bool many) const;
  void read_config(const std::string& path);
  void read_arguments(const std::vector<std::string>& arguments);

  Synopsis synopsis_;
  std::map<std::string, Setting> settings_;
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
