#include "cli/validate.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/spec.h"
#include "util/error.h"
#include "util/format.h"

namespace crais {
namespace {

using nlohmann::json;
using Kind = Option::Kind;

/// Bounds as people write them: 1000000, not 1e+06.
std::string bound_text(double bound) {
  const bool whole = std::abs(bound) < 1e15 && std::floor(bound) == bound;
  return whole ? fixed(bound, 0) : shortest(bound);
}

std::string range_text(const Option& option) {
  if (std::isfinite(option.high))
    return "must lie in [" + bound_text(option.low) + ", " + bound_text(option.high) + "]";
  return (option.low_excluded ? "must be above " : "must be at least ") + bound_text(option.low);
}

void check_range(const Option& option, double value, const std::string& text,
                 const std::string& what) {
  const bool too_low = option.low_excluded ? value <= option.low : value < option.low;
  if (too_low || value > option.high)
    throw argument_error(what + ": " + range_text(option) + ", not " + text);
  if (option.kind == Kind::kInteger && !std::isfinite(option.high) &&
      value > static_cast<double>(kMostCount))
    throw argument_error(what + ": must be at most " + std::to_string(kMostCount) + ", not " +
                         text);
}

void check_choice(const Option& option, const std::string& text, const std::string& what) {
  if (option.choices.empty()) return;
  if (std::find(option.choices.begin(), option.choices.end(), text) != option.choices.end()) return;
  throw argument_error(what + ": unknown '" + text + "'; choose from " + join(option.choices));
}

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
      check_range(option, static_cast<double>(parse_integer(text, what)), text, what);
      break;
    case Kind::kNumber:
      check_range(option, parse_number(text, what), text, what);
      break;
    case Kind::kText:
      check_choice(option, text, what);
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
  if (option.choices.empty()) return;
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
