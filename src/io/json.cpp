#include "io/json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "util/error.h"
#include "util/files.h"

namespace crais {
namespace {

using nlohmann::json;

std::string place(std::string_view text, size_t byte) {
  const size_t end = std::min(byte > 0 ? byte - 1 : 0, text.size());
  const auto* const stop = text.begin() + static_cast<std::ptrdiff_t>(end);
  const auto line = 1 + std::count(text.begin(), stop, '\n');
  const size_t newline = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
  const size_t column = newline == std::string::npos ? end + 1 : end - newline;
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

/// Notices a key that its object holds already; the parser itself keeps the last one silently.
class KeyWatch {
 public:
  bool operator()(int, json::parse_event_t event, const json& parsed) {
    if (event == json::parse_event_t::object_start) open_.emplace_back();
    if (event == json::parse_event_t::object_end) open_.pop_back();
    if (event == json::parse_event_t::key && !open_.back().insert(parsed.get<std::string>()).second)
      repeated_ = parsed.get<std::string>();
    return true;
  }
  const std::string& repeated() const { return repeated_; }

 private:
  std::vector<std::set<std::string>> open_;
  std::string repeated_;
};

/// The parser recurses.
void check_depth(std::string_view text, const std::string& source) {
  constexpr size_t kMaxDepth = 32;
  size_t depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxDepth)
        throw data_error(source + ": JSON nested deeper than " + std::to_string(kMaxDepth));
    } else if (c == '}' || c == ']') {
      if (depth > 0) --depth;
    }
  }
}

}  // namespace

bool is_utf8(const std::string& text) {
  try {
    json(text).dump();
    return true;
  } catch (const json::type_error&) {
    return false;
  }
}

std::string quoted(const std::string& text) {
  constexpr size_t kMaxShown = 80;
  const std::string shown = text.size() > kMaxShown ? text.substr(0, kMaxShown) + "..." : text;
  // ASCII output with invalid UTF-8 replaced, so that no terminal is upset.
  return json(shown).dump(-1, ' ', true, json::error_handler_t::replace);
}

json parse_json(std::string_view text, const std::string& source) {
  check_depth(text, source);
  try {
    KeyWatch watch;
    json value = json::parse(text, std::ref(watch));
    if (!watch.repeated().empty())
      throw data_error(source + ": " + quoted(watch.repeated()) + " is given twice");
    return value;
  } catch (const json::parse_error& error) {
    throw data_error(source + ": " + place(text, error.byte) + ": not valid JSON" +
                     (text.empty() ? " (the file is empty)" : ""));
  } catch (const json::exception&) {  // a number beyond every range
    throw data_error(source + ": not valid JSON (a number is out of range)");
  }
}

json read_json(const std::string& path) { return parse_json(read_file(path), path); }

json json_number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

double json_number_field(const json& object, const std::string& key, const std::string& source) {
  const json value = json_field<json>(object, key, source);
  if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (!value.is_number()) internal::bad_json_field(key, source, "is not a number");
  return value.get<double>();
}

std::string to_text(const json& value) {
  return value.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

bool internal::holds_integers(const json& value, bool list) {
  if (list)
    return value.is_array() && std::all_of(value.begin(), value.end(), [](const json& entry) {
             return holds_integers(entry, false);
           });
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  return value.is_number_integer() &&
         (!value.is_number_unsigned() || value.get<uint64_t>() <= kMost);
}

void internal::bad_json_field(const std::string& key, const std::string& source,
                              const std::string& problem) {
  throw data_error(source + ": '" + key + "' " + problem);
}

}  // namespace crais
