#include "cli/command_line.h"

#include <algorithm>
#include <cxxopts.hpp>
#include <utility>

#include "core/spec.h"
#include "io/json.h"
#include "util/error.h"
#include "util/format.h"
#include "util/suggest.h"
#include "util/version.h"

namespace crais {
namespace {

using nlohmann::json;
using Kind = Option::Kind;

Option help_option() { return option::flag("help", "print this text; --help all: every flag"); }
Option version_option() { return option::flag("version", "print versions"); }

std::vector<Option> declared(const Synopsis& synopsis) {
  std::vector<Option> options;
  for (const auto& group : synopsis.groups)
    options.insert(options.end(), group.options.begin(), group.options.end());
  return options;
}

/// The option of a flag such as "--steps". Throws Error kArgument if there is no such flag.
const Option& option_of(const std::vector<Option>& options, const std::string& flag) {
  const auto known = std::find_if(options.begin(), options.end(), [&](const Option& option) {
    return "--" + option.name == flag || (flag == "-h" && option.name == "help");
  });
  if (known != options.end()) return *known;
  const std::string name = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  std::vector<std::string> names;
  for (const Option& option : options) names.push_back(option.name);
  const bool one_dash = std::find(names.begin(), names.end(), name) != names.end();
  throw argument_error(
      "unknown flag ", flag,
      (one_dash ? "; did you mean --" + name + "?" : did_you_mean(name, names, "--")));
}

/// A given value as the value of a flag. Checks type, range and choices. Every message begins with
/// `what`.
json checked(const Option& option, const json& given, const std::string& what) {
  if (given == json(true) && option.kind != Kind::kFlag)
    throw argument_error(what, " needs a value: ", what, " ", option.value_name);
  const std::string text = given.is_string() ? given.get<std::string>() : given.dump();
  if (text.empty()) throw argument_error(what, ": the value is empty");
  check_whole(text, what);
  switch (option.kind) {
    case Kind::kFlag:
      if (text != "true" && text != "false")
        throw argument_error(what, ": is true or false, not '", text, "'");
      return text == "true";
    case Kind::kInteger: {
      const bool is_typed = given.is_number_integer();
      const int64_t value = is_typed ? given.get<int64_t>() : parse_integer(text, what);
      check_range(option.range, value, what);
      return value;
    }
    case Kind::kNumber: {
      const std::string word = word_of(option.value_name);
      if (text == word) return text;
      const double value = given.is_number() ? given.get<double>() : parse_number(text, what);
      check_range(option.range, value, what);
      return word.empty() ? json(value) : json(text);  // flags that take a word keep the text
    }
    case Kind::kText:
      check_choice(option.value_name, text, what);
      return text;
  }
  return {};
}

/// All that is given for a flag, in the form of `settings`.
json all_checked(const Option& option, const json& given, const std::string& what) {
  json values = json::array();
  const bool has_choices = !choices_of(option.value_name).empty();
  const auto add = [&](const json& one) {
    const json value = checked(option, one, what);
    if (has_choices && std::find(values.begin(), values.end(), value) != values.end())
      throw argument_error(what, ": '", value.get<std::string>(), "' is given twice");
    values.push_back(value);
  };
  for (const json& one : given) {
    if (!option.split || !one.is_string() || one == json("")) {
      add(one);
      continue;
    }
    const std::string text = one;
    for (const std::string& part : split(text, ',')) add(part);
    if (text.back() == ',') add("");
  }
  if (option.many) return values;
  if (values.size() > 1) throw argument_error(what, " is given twice");
  if (!values.empty()) return values.front();
  return option.kind == Kind::kFlag ? json(false) : json();
}

/// The words of a command line.
struct Words {
  FlagValues given;
  std::vector<std::string> operands;
};

/// Parses "--steps 8", "--steps=8", "--quiet", "--quiet=false"; all words after "--" are operands.
Words words_of(const std::vector<Option>& options, const std::vector<std::string>& arguments) {
  Words words;
  bool is_over = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (is_over || argument.size() < 2 || argument[0] != '-') {
      words.operands.push_back(argument);
      continue;
    }
    is_over = argument == "--";
    if (is_over) continue;
    const size_t equals = argument.find('=');
    const std::string flag = argument.substr(0, equals);
    const Option& option = option_of(options, flag);
    const bool has_next = i + 1 < arguments.size() && arguments[i + 1].rfind("--", 0) != 0;
    json value = true;
    if (equals != std::string::npos)
      value = argument.substr(equals + 1);
    else if (option.kind != Kind::kFlag && has_next)
      value = arguments[++i];
    words.given[option.name].push_back(value);
  }
  return words;
}

/// Checks that the arguments are valid UTF-8: they end up in JSON, in pages and on terminals.
void check_encoding(const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!is_utf8(arguments[i]))
      throw argument_error("argument ", i + 1, ", ", quoted(arguments[i]), ", is not valid UTF-8");
}

void declare(cxxopts::Options& parser, const std::string& group, const Option& option) {
  std::shared_ptr<cxxopts::Value> value;
  if (option.kind == Kind::kFlag) {
    value = cxxopts::value<bool>();
  } else {
    value = cxxopts::value<std::string>();
    if (!option.fallback.empty()) value->default_value(join(option.fallback, ","));
  }
  const std::string name = option.name == "help" ? "h,help" : option.name;
  parser.add_options(group)(name, option.help, value, option.value_name);
}

}  // namespace

void check_whole(const std::string& text, const std::string& what) {
  if (text.find('\0') != std::string::npos)
    throw argument_error(what, ": the value holds a NUL character, which would end a file's name");
}

CommandLine::CommandLine(Synopsis synopsis, int argc, const char* const* argv)
    : CommandLine(std::move(synopsis), argc > 1 ? std::vector<std::string>(argv + 1, argv + argc)
                                                : std::vector<std::string>()) {}

CommandLine::CommandLine(Synopsis synopsis) : synopsis_(std::move(synopsis)) {
  if (!synopsis_.presets.empty()) {
    std::vector<std::string> names;
    std::string help = "defaults of the flags below:";
    for (const Preset& preset : synopsis_.presets) {
      names.push_back(preset.name);
      help += "\n" + preset.name + "  " + preset.summary;
    }
    synopsis_.groups.insert(
        synopsis_.groups.begin(),
        {"Preset", {option::text("preset", join(names, "|"), {names.front()}, help).basic()}});
  }
  for (const auto& group : synopsis_.groups)
    for (const auto& option : group.options) {
      const json value = all_checked(option, option.fallback, "--" + option.name);
      if (!settings_.emplace(option.name, Setting{option, value}).second)
        throw internal_error("--", option.name, " is declared twice");
    }
}

CommandLine::CommandLine(Synopsis synopsis, const std::vector<std::string>& arguments)
    : CommandLine(std::move(synopsis)) {
  check_encoding(arguments);
  std::vector<Option> options = declared(synopsis_);
  options.insert(options.begin(), {help_option(), version_option()});
  const auto [given, operands] = words_of(options, arguments);
  if (given.count("help") > 0)
    throw Answer{help(synopsis_, given.at("help").back() == "all" ||
                                     (!operands.empty() && operands.back() == "all"))};
  if (given.count("version") > 0)
    throw Answer{synopsis_.program + " (crais " + crais_version() + ", LibTorch " +
                 libtorch_version() + ")\n"};
  take(operands, given);
}

CommandLine::CommandLine(Synopsis synopsis, std::vector<std::string> operands,
                         const FlagValues& values)
    : CommandLine(std::move(synopsis)) {
  take(std::move(operands), values);
}

void CommandLine::take(std::vector<std::string> operands, const FlagValues& values) {
  operands_ = std::move(operands);
  for (const auto& operand : operands_) check_whole(operand, quoted(operand));
  const std::vector<Option> options = declared(synopsis_);
  for (const auto& [name, given] : values) {
    Setting& setting = settings_.at(option_of(options, "--" + name).name);
    setting.value = all_checked(setting.option, given, "--" + name);
    setting.given = true;
  }
  for (const Preset& preset : synopsis_.presets) {
    if (preset.name != text("preset")) continue;
    for (const auto& [name, value] : preset.defaults)
      if (Setting& setting = settings_.at(name); !setting.given)
        setting.value =
            all_checked(setting.option, json::array({value}), "--preset " + preset.name);
  }
  if (operands_.size() < synopsis_.min_operands)
    throw argument_error(synopsis_.operands, " is missing; see ", synopsis_.program, " --help");
  if (operands_.size() > synopsis_.max_operands)
    throw argument_error("unexpected argument '", operands_[synopsis_.max_operands], "'; see ",
                         synopsis_.program, " --help");
}

const CommandLine::Setting& CommandLine::setting(const std::string& name) const {
  const auto entry = settings_.find(name);
  if (entry == settings_.end()) throw internal_error("--", name, " was never declared");
  return entry->second;
}

void CommandLine::exclude(const std::string& one, const std::string& other) const {
  if (flag(one) && flag(other))
    throw argument_error("--", one, " and --", other, " exclude each other");
}

void CommandLine::refuse_idle(const std::string& name, const std::string& why) const {
  if (given(name)) throw argument_error("--", name, " does nothing ", why, "; leave it out");
}

void CommandLine::allow_only(const std::set<std::string>& names, const std::string& why) const {
  for (const std::string& name : given())
    if (names.count(name) == 0) throw argument_error("--", name, ": ", why);
}

bool CommandLine::has(const std::string& name) const {
  return !setting(name).value.empty();  // null, or an empty list
}

std::set<std::string> CommandLine::given() const {
  std::set<std::string> names;
  for (const auto& [name, setting] : settings_)
    if (setting.given) names.insert(name);
  return names;
}

json CommandLine::settings() const {
  json object = json::object();
  for (const auto& [name, setting] : settings_) object[name] = setting.value;
  return object;
}

std::string CommandLine::help(const Synopsis& synopsis, bool all) {
  cxxopts::Options parser(synopsis.program, synopsis.summary);
  parser.custom_help("[FLAGS] " + synopsis.operands).set_width(100);
  OptionGroup basic{"Flags", {}};
  for (const auto& group : synopsis.groups)
    for (Option option : group.options) {
      if (!option.is_basic) continue;
      option.help = split(option.help, '\n').front();
      if (option.help.back() == ':') option.help.pop_back();
      basic.options.push_back(std::move(option));
    }
  const bool is_short = !all && !basic.options.empty();
  std::vector<OptionGroup> groups = is_short ? std::vector{basic} : synopsis.groups;
  groups.push_back({"Other", {help_option(), version_option()}});
  std::vector<std::string> titles;
  for (const auto& group : groups) {
    titles.push_back(group.title);
    for (const auto& option : group.options) declare(parser, group.title, option);
  }
  std::string text = parser.help(titles);
  if (synopsis.examples.empty()) return text;
  text += "\nExamples:\n";
  if (!is_short) return text + synopsis.examples + "\n";
  std::vector<std::string> examples = split(synopsis.examples, '\n');
  examples.resize(std::min<size_t>(examples.size(), 3));
  return text + join(examples, "\n") + "\n\n" + synopsis.program +
         " --help all lists every flag and the names that they take.\n";
}

std::string command_of(const Synopsis& synopsis, const std::vector<std::string>& operands,
                       const json& settings) {
  FlagValues least;
  if (settings.value("preset", json()).is_string()) least["preset"].push_back(settings["preset"]);
  const json defaults = CommandLine(synopsis, operands, least).settings();
  const json plain = CommandLine(synopsis, operands, {}).settings();
  std::string line = synopsis.program;
  for (const auto& operand : operands) line += " " + shell_quoted(operand);
  for (const auto& [name, value] : settings.items()) {
    const json& known = name == "preset" ? plain.value(name, json()) : defaults.value(name, json());
    if (value == known || value.is_null() || !plain.contains(name)) continue;
    for (const json& entry : value.is_array() ? value : json::array({value})) {
      if (entry == json(false)) continue;
      line += " --" + name;
      if (entry != json(true))
        line += " " + shell_quoted(entry.is_string() ? entry.get<std::string>() : entry.dump());
    }
  }
  return line;
}

}  // namespace crais
