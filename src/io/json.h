// JSON files: read with errors that name the place, written in one form.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace crais {

/// Parses JSON that nobody vouches for: nested at most 32 deep, no key twice in an object, text
/// that is valid UTF-8. Throws Error kData: "<source>: line 3, column 7: not valid JSON (...)".
nlohmann::json parse_json(std::string_view text, const std::string& source);

bool is_utf8(const std::string& text);

/// An untrusted text made fit for one line of a message: quoted, escaped, cut to 80 bytes.
std::string quoted(const std::string& text);

/// Reads a file. Throws as read_file (util/files.h) and parse_json do.
nlohmann::json read_json(const std::string& path);

/// The object's value under `key`, of type T.
/// Throws Error kData naming the source and the key if it is absent or of another type.
template <typename T>
T json_field(const nlohmann::json& object, const std::string& key, const std::string& source);

/// A number, or null where it is not finite (JSON has no nan).
nlohmann::json json_number(double value);
/// The number, or nan where it is null. Throws Error kData as json_field does.
double json_number_field(const nlohmann::json& object, const std::string& key,
                         const std::string& source);

/// Two spaces of indentation, a newline at the end; bytes that are not UTF-8 are replaced.
std::string to_text(const nlohmann::json& value);

namespace internal {
[[noreturn]] void bad_json_field(const std::string& key, const std::string& source,
                                 const std::string& problem);
/// A whole number of 64 bits, or (`list`) an array of such: the library would cast any other.
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
