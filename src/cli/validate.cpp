#include "cli/validate.h"

#include <nlohmann/json.hpp>
#include <set>

#include "core/spec.h"
#include "util/error.h"

namespace crais {
namespace {

using nlohmann::json;
using Kind = Option::Kind;

}  // namespace

void check_whole(const std::string& text, const std::string& what) {
  if (text.find('\0') != std::string::npos)
    throw argument_error(what + ": the value holds a NUL character, where a file's name would end");
}

void check_value(const Option& option, const std::string& text, const std::string& what) {
  if (text.empty()) throw argument_error(what + ": the value is empty");
  check_whole(text, what);
  switch (option.kind) {
    case Kind::kFlag:
      if (text != "true" && text != "false")
        throw argument_error(what + ": is true or false, not '" + text + "'");
      break;
    case Kind::kInteger:
      check_range(option.range, parse_integer(text, what), what);
      break;
    case Kind::kNumber:
      if (text != word_of(option.value_name))
        check_range(option.range, parse_number(text, what), what);
      break;
    case Kind::kText:
      check_choice(option.value_name, text, what);
      break;
  }
}

std::vector<std::string> cut(const Option& option, const std::string& text) {
  if (!option.split || text.empty()) return {text};
  std::vector<std::string> parts = split(text, ',');
  if (text.back() == ',') parts.emplace_back();
  return parts;
}

void check_values(const Option& option, const std::vector<std::string>& values,
                  const std::string& what) {
  if (!option.many && values.size() > 1) throw argument_error(what + ": is given twice");
  for (const auto& value : values) check_value(option, value, what);
  if (choices_of(option.value_name).empty()) return;
  std::set<std::string> seen;
  for (const auto& value : values)
    if (!seen.insert(value).second) throw argument_error(what + ": '" + value + "' is given twice");
}

json typed(const Option& option, const std::string& text) {
  switch (option.kind) {
    case Kind::kFlag:
      return text == "true";
    case Kind::kInteger:
      return parse_integer(text, option.name);
    case Kind::kNumber:
      if (!word_of(option.value_name).empty()) break;  // a word or a number, in files a text
      return parse_number(text, option.name);
    case Kind::kText:
      break;
  }
  return text;
}

std::vector<std::string> config_texts(const Option& option, const json& value,
                                      const std::string& what) {
  if (value.is_array() && option.many) {
    std::vector<std::string> texts;
    for (const json& element : value) {
      if (element.is_structured() || element.is_null())
        throw argument_error(what + ": a list of plain values is expected");
      const auto one = config_texts(option, element, what);
      texts.insert(texts.end(), one.begin(), one.end());
    }
    return texts;
  }
  if (value.is_structured())
    throw argument_error(what + ": is " +
                         (value.is_array() ? "one value, not a list" : "no object"));
  if (value.is_boolean() && option.kind != Kind::kFlag)
    throw argument_error(what + ": needs a value, not " + value.dump());
  return cut(option, value.is_string() ? value.get<std::string>() : value.dump());
}

}  // namespace crais
