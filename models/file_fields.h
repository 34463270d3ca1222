// Typed access to what a file says of a model. A complaint, Error kData, is one line: the place,
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

/// An object of JSON, which must outlive this.
class FileFields {
 public:
  /// `remedy` ends complaints of what is missing. Throws unless `object` is one.
  FileFields(const nlohmann::json& object, std::string where, std::string remedy = "");

  /// The complaint that a field "is not `right`".
  Error wrong(const std::string& key, const std::string& right) const;

  /// False where it is null, too.
  bool has(const std::string& key) const;
  const nlohmann::json& at(const std::string& key) const;
  /// Of at most 4,096 bytes, without control characters.
  std::string text(const std::string& key) const;
  bool flag(const std::string& key) const;
  double number(const std::string& key) const;
  std::optional<double> number_or_null(const std::string& key) const;
  uint64_t natural(const std::string& key) const;
  int64_t integer(const std::string& key, int64_t low, int64_t high) const;
  /// `least` to `most` numbers in low..high.
  std::vector<int64_t> integers(const std::string& key, size_t least, size_t most, int64_t low,
                                int64_t high) const;
  std::vector<std::string> words(const std::string& key) const;
  FileFields object(const std::string& key) const;
  /// A text in the form that one of our own parsers takes.
  template <typename Value>
  Value parsed(const std::string& key, Value (*parse)(const std::string&)) const {
    try {
      return parse(text(key));
    } catch (const Error& error) {  // a usage error on the command line, here the file's fault
      throw data_error(where_ + ": " + error.what());
    }
  }

 private:
  int64_t checked(const nlohmann::json& value, const std::string& key, int64_t low,
                  int64_t high) const;

  const nlohmann::json& object_;
  std::string where_, remedy_;
};

/// The tensor of that name: of `type`, of `shape`, in which -1 is any size but 0, and finite.
at::Tensor tensor_of(const SafeTensors& file, const std::string& name, at::IntArrayRef shape,
                     const std::string& where, at::ScalarType type = at::kFloat,
                     const std::string& remedy = "");

}  // namespace crais
