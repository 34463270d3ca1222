// Typed access to the description of a model in a file. An error (kData) is one line: the place,
// the name, and what would be right.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "util/error.h"

namespace crais {

/// A JSON object, which must outlive this.
class FileFields {
 public:
  /// Throws if `object` is not an object.
  FileFields(const nlohmann::json& object, std::string where);

  /// The error that a field "is not `right`".
  template <class... Parts>
  Error wrong(const std::string& key, const Parts&... right) const {
    return data_error(where_, ": \"", key, "\" is not ", right...);
  }

  /// True if the field is present and not null.
  bool has(const std::string& key) const;
  const nlohmann::json& at(const std::string& key) const;
  /// A text of at most 4,096 bytes without control characters.
  std::string text(const std::string& key) const;
  bool flag(const std::string& key) const;
  double number(const std::string& key) const;
  std::optional<double> number_or_null(const std::string& key) const;
  uint64_t natural(const std::string& key) const;
  int64_t integer(const std::string& key, int64_t low, int64_t high) const;
  /// A list of `least` to `most` whole numbers in low..high.
  std::vector<int64_t> integers(const std::string& key, size_t least, size_t most, int64_t low,
                                int64_t high) const;
  std::vector<std::string> words(const std::string& key) const;
  FileFields object(const std::string& key) const;
  /// A text in the syntax of one of crais' own parsers.
  template <typename Value>
  Value parsed(const std::string& key, Value (*parse)(const std::string&)) const {
    try {
      return parse(text(key));
    } catch (const Error& error) {  // a usage error of a flag is a data error in a file
      throw data_error(where_, ": ", error.what());
    }
  }

 private:
  int64_t checked(const nlohmann::json& value, const std::string& key, int64_t low,
                  int64_t high) const;

  const nlohmann::json& object_;
  std::string where_;
};

/// The tensor of that name, with `type` and finite values. In `shape`, -1 stands for any size but
/// 0.
at::Tensor tensor_of(const SafeTensors& file, const std::string& name, at::IntArrayRef shape,
                     const std::string& where, at::ScalarType type = at::kFloat);

}  // namespace crais
