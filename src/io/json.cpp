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

/// The place "line 3, column 7" in the library's message.
std::string place(const std::string& said) {
  const size_t begin = said.find("line ");
  return said.substr(begin, said.find(':', begin) - begin);
}

/// Rejects deep nesting and repeated keys of an object: the parser itself silently keeps the last
/// value of a key.
class Watch {
 public:
  explicit Watch(const std::string& source) : source_(source) {}

  bool operator()(int depth, json::parse_event_t event, const json& parsed) {
    constexpr int kMaxDepth = 32;
    using Event = json::parse_event_t;
    if (depth >= kMaxDepth && (event == Event::object_start || event == Event::array_start))
      throw data_error(source_, ": JSON nested deeper than ", kMaxDepth);
    if (event == Event::object_start) open_.emplace_back();
    if (event == Event::object_end) open_.pop_back();
    if (event == Event::key && !open_.back().insert(parsed.get<std::string>()).second)
      repeated_ = parsed.get<std::string>();
    return true;
  }
  const std::string& repeated() const { return repeated_; }

 private:
  const std::string& source_;
  std::vector<std::set<std::string>> open_;
  std::string repeated_;
};

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
  // ASCII output with invalid UTF-8 replaced: safe on any terminal.
  return json(shown).dump(-1, ' ', true, json::error_handler_t::replace);
}

json parse_json(std::string_view text, const std::string& source) {
  try {
    Watch watch(source);
    json value = json::parse(text, std::ref(watch));
    if (!watch.repeated().empty())
      throw data_error(source, ": ", quoted(watch.repeated()), " is given twice");
    return value;
  } catch (const json::parse_error& error) {
    throw data_error(source, ": ", place(error.what()), ": not valid JSON",
                     (text.empty() ? " (the file is empty)" : ""));
  } catch (const json::exception&) {  // a number outside the range of double
    throw data_error(source, ": not valid JSON (a number is out of range)");
  }
}

json read_json(const std::string& path) { return parse_json(read_file(path), path); }

json json_number(std::optional<double> value) {
  return value && std::isfinite(*value) ? json(*value) : json(nullptr);
}

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
  throw data_error(source, ": '", key, "' ", problem);
}

}  // namespace crais
