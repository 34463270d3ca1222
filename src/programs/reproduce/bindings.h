// The words of an experiment: named values, texts and sums made of them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "programs/reproduce/measures.h"

namespace crais {

/// The values that hold for one row. Errors are of kind kData and begin with `where`.
class Bindings {
 public:
  Bindings(std::string where, nlohmann::json values)
      : where_(std::move(where)), values_(std::move(values)) {}

  /// Later values replace earlier ones of the same name.
  void add(const nlohmann::json& values) { values_.update(values); }
  bool has(const std::string& name) const { return values_.contains(name); }
  const nlohmann::json& all() const { return values_; }
  const nlohmann::json& at(const std::string& name) const { return values_.at(name); }

  /// The text with each "{name}" replaced by that value, in which names are replaced too, and each
  /// "{=sum}" by its number to three digits.
  std::string text(const std::string& words) const;
  /// The text of a name; `otherwise` if there is none.
  std::string text_of(const std::string& name, const std::string& otherwise = "") const;
  /// Numbers, measures and names with + - * / between them, all one space apart, from left to
  /// right. "paper/linear/0" is an entry of the value `paper`; NaN if `paper` has none.
  double number(const std::string& sum, const Measures& measures = {}) const;
  int64_t integer(const std::string& name, int64_t otherwise) const;
  const std::string& where() const { return where_; }

 private:
  double term(const std::string& word, const Measures& measures) const;

  std::string where_;
  nlohmann::json values_;
};

}  // namespace crais
