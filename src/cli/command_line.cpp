#include "cli/command_line.h"

#include <algorithm>
#include <cxxopts.hpp>
#include <utility>

#include "cli/validate.h"
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

Option config_option() { return option::text("config", "FILE", {}, "read flags from a JSON file"); }
Option help_option() { return option::flag("help", "print this text"); }
Option version_option() { return option::flag("version", "print versions"); }

std::vector<std::string> names_of(const std::vector<Option>& options) {
  std::vector<std::string> names;
  names.reserve(options.size());
  for (const auto& option : options) names.push_back(option.name);
  return names;
}

std::vector<Option> all_options(const Synopsis& synopsis) {
  std::vector<Option> options{config_option(), help_option(), version_option()};
  for (const auto& group : synopsis.groups)
    options.insert(options.end(), group.options.begin(), group.options.end());
  return options;
}

/// The option that `flag`, "--steps", names. Throws Error kArgument where none does.
const Option& option_of(const std::vector<Option>& options, const std::string& flag) {
  const auto known = std::find_if(options.begin(), options.end(), [&](const Option& option) {
    return "--" + option.name == flag || (flag == "-h" && option.name == "help");
  });
  if (known != options.end()) return *known;
  const std::string name = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  const auto names = names_of(options);
  const bool one_dash = std::find(names.begin(), names.end(), name) != names.end();
  throw argument_error(
      "unknown flag " + flag +
      (one_dash ? "; did you mean --" + name + "?" : did_you_mean(name, names, "--")));
}

/// What a command line says, in its own words.
struct Words {
  std::map<std::string, std::vector<std::string>> given;  // the texts of each flag, by its name
  std::vector<std::string> operands;
};

/// "--steps 8", "--steps=8", "--quiet", "--quiet=false"; after "--" all are operands.
Words words_of(const std::vector<Option>& options, const std::vector<std::string>& arguments) {
  Words words;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") {
      const auto rest = arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1;
      words.operands.insert(words.operands.end(), rest, arguments.end());
      break;
    }
    if (argument.size() < 2 || argument[0] != '-') {
      words.operands.push_back(argument);
      continue;
    }
    const size_t equals = argument.find('=');
    const std::string flag = argument.substr(0, equals);
    const Option& option = option_of(options, flag);
    std::string value = "true";
    if (equals != std::string::npos) {
      value = argument.substr(equals + 1);
      if (option.kind == Kind::kFlag) check_value(option, value, flag);
    } else if (option.kind != Kind::kFlag) {
      ++i;
      if (i == arguments.size() || (arguments[i].rfind("--", 0) == 0 && !option.dashed))
        throw argument_error(flag + " needs a value: " + flag + " " + option.value_name);
      value = arguments[i];
    }
    words.given[option.name].push_back(value);
  }
  return words;
}

/// Flags end up in JSON, in pages and on terminals.
void check_encoding(const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!is_utf8(arguments[i]))
      throw argument_error("argument " + std::to_string(i + 1) + ", " + quoted(arguments[i]) +
                           ", is not valid UTF-8");
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

cxxopts::Options make_parser(const Synopsis& synopsis) {
  cxxopts::Options parser(synopsis.program, synopsis.summary);
  parser.custom_help("[FLAGS] " + synopsis.operands).set_width(100);
  for (const auto& group : synopsis.groups)
    for (const auto& option : group.options) declare(parser, group.title, option);
  for (const auto& option : {config_option(), help_option(), version_option()})
    declare(parser, "Other", option);
  return parser;
}

std::string version_text(const std::string& program) {
  return program + " (crais " + crais_version() + ", LibTorch " + libtorch_version() + ")\n";
}

}  // namespace

CommandLine::CommandLine(Synopsis synopsis, int argc, const char* const* argv)
    : CommandLine(std::move(synopsis), argc > 1 ? std::vector<std::string>(argv + 1, argv + argc)
                                                : std::vector<std::string>()) {}

CommandLine::CommandLine(Synopsis synopsis, const std::vector<std::string>& arguments)
    : synopsis_(std::move(synopsis)) {
  if (!synopsis_.presets.empty()) {
    std::vector<std::string> names;
    std::string help = "defaults of the flags below:";
    for (const Preset& preset : synopsis_.presets) {
      names.push_back(preset.name);
      help += "\n" + preset.name + "  " + preset.summary;
    }
    synopsis_.groups.insert(
        synopsis_.groups.begin(),
        {"Preset", {option::text("preset", join(names, "|"), names.front(), help)}});
  }
  for (const auto& group : synopsis_.groups) {
    for (const auto& option : group.options) {
      std::vector<std::string> values = option.fallback;
      if (option.kind == Kind::kFlag) values = {"false"};
      if (!settings_.emplace(option.name, Setting{option, values}).second)
        throw Error(ErrorKind::kInternal, "--" + option.name + " is declared twice");
    }
  }
  read_arguments(arguments);
}

void CommandLine::read_arguments(const std::vector<std::string>& arguments) {
  check_encoding(arguments);
  auto [given, operands] = words_of(all_options(synopsis_), arguments);
  operands_ = std::move(operands);
  for (const auto& operand : operands_) check_whole(operand, quoted(operand));
  if (given.count("help") > 0) throw Answer{help(synopsis_)};
  if (given.count("version") > 0) throw Answer{version_text(synopsis_.program)};
  if (const auto found = given.find("config"); found != given.end()) {
    check_values(config_option(), found->second, "--config");
    read_config(found->second.front());
    given.erase(found);
  }
  for (const auto& [name, texts] : given) {
    Setting& setting = settings_.at(name);
    if (!setting.option.many && texts.size() > 1)
      throw argument_error("--" + name + " is given twice");
    setting.values.clear();
    for (const auto& text : texts)
      for (auto& part : cut(setting.option, text)) setting.values.push_back(std::move(part));
    check_values(setting.option, setting.values, "--" + name);
    setting.given = setting.is_typed = true;
  }
  for (const Preset& preset : synopsis_.presets) {
    if (preset.name != text("preset")) continue;
    for (const auto& [name, value] : preset.defaults)
      if (Setting& setting = settings_.at(name); !setting.given) setting.values = {value};
  }
  if (operands_.size() < synopsis_.min_operands)
    throw argument_error(synopsis_.operands + " is missing; see " + synopsis_.program + " --help");
  if (operands_.size() > synopsis_.max_operands)
    throw argument_error("unexpected argument '" + operands_[synopsis_.max_operands] + "'; see " +
                         synopsis_.program + " --help");
}

void CommandLine::read_config(const std::string& path) {
  const json config = read_json(path);
  if (!config.is_object())
    throw data_error(path + ": a JSON object of flag names and values is expected");
  std::vector<std::string> names;
  for (const auto& [name, setting] : settings_) names.push_back(name);
  for (const auto& [key, value] : config.items()) {
    const auto found = settings_.find(key);
    if (found == settings_.end())
      throw data_error(path + ": unknown flag '" + key + "'" + did_you_mean(key, names));
    if (value.is_null()) continue;
    Setting& setting = found->second;
    try {
      setting.values = config_texts(setting.option, value, path + ": " + key);
      check_values(setting.option, setting.values, path + ": " + key);
    } catch (const Error& error) {
      throw data_error(error.what());  // the file's fault, not the command line's
    }
    setting.given = true;
  }
}

const CommandLine::Setting& CommandLine::setting(const std::string& name) const {
  const auto found = settings_.find(name);
  if (found == settings_.end())
    throw Error(ErrorKind::kInternal, "--" + name + " was never declared");
  return found->second;
}

const CommandLine::Setting& CommandLine::setting(const std::string& name, Kind kind,
                                                 bool many) const {
  const Setting& found = setting(name);
  if (found.option.kind != kind || found.option.many != many)
    throw Error(ErrorKind::kInternal, "--" + name + " is declared with another type");
  if (!many && found.values.empty())
    throw Error(ErrorKind::kInternal, "--" + name + " has no value");
  return found;
}

void CommandLine::exclude(const std::string& one, const std::string& other) const {
  if (flag(one) && flag(other))
    throw argument_error("--" + one + " and --" + other + " exclude each other");
}

void CommandLine::refuse_idle(const std::string& name, const std::string& why) const {
  if (chosen(name)) throw argument_error("--" + name + " does nothing " + why + "; leave it out");
}

void CommandLine::allow_only(const std::set<std::string>& names, const std::string& why) const {
  for (const auto& [name, setting] : settings_)
    if (setting.given && names.count(name) == 0) throw argument_error("--" + name + ": " + why);
}

bool CommandLine::has(const std::string& name) const { return !setting(name).values.empty(); }
bool CommandLine::given(const std::string& name) const { return setting(name).given; }
bool CommandLine::chosen(const std::string& name) const {
  const Setting& found = setting(name);
  const auto says_the_same = [&](const std::string& one, const std::string& other) {
    return typed(found.option, one) == typed(found.option, other);
  };
  const auto &values = found.values, &defaults = found.option.fallback;
  return found.is_typed ||
         (found.given && !std::equal(values.begin(), values.end(), defaults.begin(), defaults.end(),
                                     says_the_same));
}

bool CommandLine::flag(const std::string& name) const {
  return setting(name, Kind::kFlag, false).values.front() == "true";
}
int64_t CommandLine::integer(const std::string& name) const {
  return parse_integer(setting(name, Kind::kInteger, false).values.front(), "--" + name);
}
double CommandLine::number(const std::string& name) const {
  return parse_number(setting(name, Kind::kNumber, false).values.front(), "--" + name);
}
std::string CommandLine::text(const std::string& name) const {
  return setting(name, Kind::kText, false).values.front();
}

int64_t CommandLine::integer(const std::string& name, int64_t otherwise) const {
  return has(name) ? integer(name) : otherwise;
}
double CommandLine::number(const std::string& name, double otherwise) const {
  return has(name) ? number(name) : otherwise;
}
std::string CommandLine::text(const std::string& name, const std::string& otherwise) const {
  return has(name) ? text(name) : otherwise;
}

std::vector<int64_t> CommandLine::integers(const std::string& name) const {
  std::vector<int64_t> values;
  for (const auto& text : setting(name, Kind::kInteger, true).values)
    values.push_back(parse_integer(text, "--" + name));
  return values;
}
std::vector<double> CommandLine::numbers(const std::string& name) const {
  std::vector<double> values;
  for (const auto& text : setting(name, Kind::kNumber, true).values)
    values.push_back(parse_number(text, "--" + name));
  return values;
}
std::vector<std::string> CommandLine::texts(const std::string& name) const {
  return setting(name, Kind::kText, true).values;
}

json CommandLine::settings() const {
  json object = json::object();
  for (const auto& [name, setting] : settings_) {
    json& value = object[name];
    if (setting.option.many) value = json::array();
    for (const auto& text : setting.values) {
      if (setting.option.many)
        value.push_back(typed(setting.option, text));
      else
        value = typed(setting.option, text);
    }
  }
  return object;
}

std::string CommandLine::help(const Synopsis& synopsis) {
  std::vector<std::string> titles;
  for (const auto& group : synopsis.groups) titles.push_back(group.title);
  titles.push_back("Other");
  const std::string text = make_parser(synopsis).help(titles);
  return synopsis.examples.empty() ? text : text + "\nExamples:\n" + synopsis.examples + "\n";
}

std::vector<std::string> flags_of(const Synopsis& synopsis,
                                  const std::vector<std::string>& operands, const json& settings) {
  std::vector<std::string> words, least = operands;
  const auto preset = settings.find("preset");
  if (preset != settings.end() && preset->is_string())
    least.insert(least.end(), {"--preset", preset->get<std::string>()});
  const json defaults = CommandLine(synopsis, least).settings();
  const json plain = CommandLine(synopsis, operands).settings();
  for (const auto& [name, value] : settings.items()) {
    const json& known = name == "preset" ? plain.value(name, json()) : defaults.value(name, json());
    if (value == known || value.is_null() || !plain.contains(name)) continue;
    for (const json& entry : value.is_array() ? value : json::array({value})) {
      if (entry == json(false)) continue;
      words.push_back("--" + name);
      if (entry != json(true))
        words.push_back(entry.is_string() ? entry.get<std::string>() : entry.dump());
    }
  }
  return words;
}

std::string command_of(const Synopsis& synopsis, const std::vector<std::string>& operands,
                       const json& settings) {
  std::string line = synopsis.program;
  for (const auto& operand : operands) line += " " + shell_quoted(operand);
  for (const auto& word : flags_of(synopsis, operands, settings)) line += " " + shell_quoted(word);
  return line;
}

}  // namespace crais
