// JSON files: errors name the place in the file, and output has one form.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace crais {

/// Parses untrusted JSON: nested at most 32 deep, without repeated keys in an object, in valid
/// UTF-8. Throws Error kData: "<source>: line 3, column 7: not valid JSON (...)".
nlohmann::json parse_json(std::string_view text, const std::string& source);

bool is_utf8(const std::string& text);

/// An untrusted text for one line of a message: quoted, escaped, cut to 80 bytes.
std::string quoted(const std::string& text);

/// Reads a file. Throws the errors of read_file (util/files.h) and parse_json.
nlohmann::json read_json(const std::string& path);

/// The object's value under `key`, of type T. Throws Error kData that names the source and the key
/// if the value is absent or of another type.
template <typename T>
T json_field(const nlohmann::json& object, const std::string& key, const std::string& source);

/// A number, or null if there is none or it is not finite (JSON has no nan).
nlohmann::json json_number(std::optional<double> value);
/// The number under `key`, or nan if it is null. Throws the errors of json_field.
double json_number_field(const nlohmann::json& object, const std::string& key,
                         const std::string& source);

/// The value as text with two spaces of indentation and a final newline. Bytes that are not UTF-8
/// are replaced.
std::string to_text(const nlohmann::json& value);

namespace internal {
[[noreturn]] void bad_json_field(const std::string& key, const std::string& source,
                                 const std::string& problem);
/// True for a whole number of 64 bits or, if `list`, an array of such numbers. The library would
/// cast any other number.
bool holds_integers(const nlohmann::json& value, bool list);
}  // namespace internal

template <typename T>
T json_field(const nlohmann::json& object, const std::string& key, const std::string& source) {
  if (!object.is_object() || !object.contains(key))
    internal::bad_json_field(key, source, "is missing");
  const nlohmann::json& value = object.at(key);
  constexpr bool kList = std::is_same_v<T, std::vector<int64_t>>;
  if constexpr (kList || std::is_same_v<T, int64_t>)
    if (!internal::holds_integers(value, kList))
      internal::bad_json_field(key, source, "is not of whole numbers of 64 bits");
  try {
    return value.get<T>();
  } catch (const nlohmann::json::exception&) {
    internal::bad_json_field(key, source, std::string("has the wrong type, ") + value.type_name());
  }
}

}  // namespace crais
