#include "core/spec.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>
#include <utility>

#include "core/limits.h"
#include "util/error.h"
#include "util/format.h"

namespace crais {
namespace {

template <typename T>
T parse(const std::string& text, const std::string& what, const char* kind) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end)
    throw argument_error(what, ": '", text, "' is ",
                         error == std::errc::result_out_of_range ? "too large for " : "not ", kind);
  return value;
}

/// The parameters of a specification. Commas within parentheses belong to a nested specification.
std::vector<std::string> parameters_of(const std::string& text) {
  std::vector<std::string> parts(1);
  int64_t depth = 0;
  for (const char c : text) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

/// The text without its surrounding parentheses, if there are any.
std::string unwrapped(const std::string& text) {
  const bool is_wrapped = text.size() > 2 && text.front() == '(' && text.back() == ')';
  return is_wrapped ? text.substr(1, text.size() - 2) : text;
}

}  // namespace

std::string join(const std::vector<std::string>& words, const std::string& separator) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

double parse_number(const std::string& text, const std::string& what) {
  const double value = parse<double>(text, what, "a number");
  if (!std::isfinite(value)) throw argument_error(what, ": '", text, "' is not a finite number");
  return value;
}

int64_t parse_integer(const std::string& text, const std::string& what) {
  return parse<int64_t>(text, what, "a whole number");
}

Spec::Spec(const std::string& text) : text_(text) {
  const auto colon = text.find(':');
  name_ = text.substr(0, colon);
  if (name_.empty()) throw argument_error("'", text, "': a name is missing");
  if (colon == std::string::npos) return;
  const std::string rest = text.substr(colon + 1);
  if (rest.empty()) throw argument_error("'", text, "': nothing follows the colon");
  if (name_ == "file") {
    unnamed_ = rest;
    return;
  }
  for (const auto& part : parameters_of(rest)) {
    const auto equals = part.find('=');
    if (equals == std::string::npos && !unnamed_ && values_.empty()) {
      unnamed_ = part;
    } else if (equals == std::string::npos || equals == 0 ||
               !values_.emplace(part.substr(0, equals), unwrapped(part.substr(equals + 1)))
                    .second) {
      throw argument_error("'", text, "': '", part,
                           "' is not of the form key=value, or repeats one");
    }
  }
}

std::optional<std::string> Spec::take(const std::string& key) {
  if (known_.empty() && unnamed_ && !values_.emplace(key, *std::exchange(unnamed_, {})).second)
    throw argument_error("'", text_, "': ", key, " is given twice");
  known_.push_back(key);
  const auto entry = values_.find(key);
  if (entry == values_.end()) return {};
  return entry->second;
}

double Spec::number(const std::string& key, double low, double high,
                    std::optional<double> fallback) {
  const auto text = take(key);
  if (!text && fallback) return *fallback;
  if (!text)
    throw argument_error("'", text_, "': needs ", key, ", as in ", name_, ":", shortest(low));
  const double value = parse_number(*text, "'" + text_ + "': " + key);
  check_range(Range::between(low, high), value, "'" + text_ + "': " + key);
  return value;
}

int64_t Spec::integer(const std::string& key, int64_t low, int64_t high,
                      std::optional<int64_t> fallback) {
  const auto text = take(key);
  if (!text && fallback) return *fallback;
  if (!text) throw argument_error("'", text_, "': needs ", key);
  const int64_t value = parse_integer(*text, "'" + text_ + "': " + key);
  check_range(Range::between(static_cast<double>(low), static_cast<double>(high)), value,
              "'" + text_ + "': " + key);
  return value;
}

std::string Spec::word(const std::string& key, std::optional<std::string> fallback) {
  const auto text = take(key);
  if (text) return *text;
  if (!fallback) throw argument_error("'", text_, "': needs ", key);
  return *fallback;
}

void Spec::finish() const {
  std::vector<std::string> unread;
  if (unnamed_) unread.push_back(*unnamed_);
  for (const auto& [key, value] : values_)
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) unread.push_back(key);
  if (unread.empty()) return;
  throw argument_error(
      "'", text_, "': unknown parameter ", join(unread),
      (known_.empty() ? "; " + name_ + " takes none" : "; choose from " + join(known_)));
}

}  // namespace crais
